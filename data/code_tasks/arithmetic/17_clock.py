DRAW = lambda rng: (
    f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}",
    f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}",
)

"""Times of day are texts `"HH:MM"` from `"00:00"` to `"23:59"`. Define `minutes_until(start, end)`: the number of
minutes from `start` to the next time that the clock shows `end`, 0 if they are equal."""
EXAMPLE = ("23:50", "00:05"), 15
EDGES = [("10:00", "10:00"), ("00:00", "23:59"), ("12:30", "12:29")]

def minutes_until(start, end):
    hours, minutes = map(int, end.split(":"))
    earlier = int(start[:2]) * 60 + int(start[3:])
    # wrong: return abs(hours * 60 + minutes - earlier)
    return (hours * 60 + minutes - earlier) % 1440

"""Times of day are texts `"HH:MM"` from `"00:00"` to `"23:59"`. Define `add_minutes(time, count)`: the time `count`
minutes after `time` (before it if `count` is negative), in the same format."""
EXAMPLE = ("23:50", 75), "01:05"
EDGES = [("00:00", -1), ("12:00", 1440), ("08:59", 1)]
DRAW = lambda rng: (f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}", rng.randint(-900, 900))

def add_minutes(time, count):
    hours, minutes = map(int, time.split(":"))
    # wrong: total = hours * 60 + minutes + count
    total = (hours * 60 + minutes + count) % 1440
    return f"{total // 60:02}:{total % 60:02}"

"""Times of day are texts `"HH:MM"` from `"00:00"` to `"23:59"`. Define `to_twelve_hours(time)`: the time in the 12-hour
format `"H:MM AM"` or `"H:MM PM"`, the hour from 1 to 12 without a leading zero; midnight is `"12:00 AM"` and noon
`"12:00 PM"`."""
EXAMPLE = ("00:05",), "12:05 AM"
EDGES = [("12:00",), ("00:00",), ("11:59",), ("23:01",)]
DRAW = lambda rng: (f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}",)

def to_twelve_hours(time):
    hours, minutes = map(int, time.split(":"))
    # wrong: return f"{hours % 12}:{minutes:02} {'AM' if hours < 12 else 'PM'}"
    return f"{(hours - 1) % 12 + 1}:{minutes:02} {'AM' if hours < 12 else 'PM'}"
