DRAW = lambda rng: (rng.choice([rng.randint(1600, 2400), rng.randint(4, 6) * 400, rng.randint(16, 24) * 100]),)

"""In the Gregorian calendar a year is a leap year if it is divisible by 4, except that years divisible by 100 are leap
years only if divisible by 400. Define `is_leap_year(year)`: `True` if `year` is a leap year, else `False`."""
EXAMPLE = (1996,), True
EDGES = [(1900,), (2000,), (2023,)]

def is_leap_year(year):
    # wrong: return year % 4 == 0 and year % 100 != 0
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)

"""In the Gregorian calendar a year is a leap year if it is divisible by 4, except that years divisible by 100 are leap
years only if divisible by 400. Define `count_leap_years(first, last)`: the number of leap years from `first` to `last`,
both included, 0 if `first` is greater."""
EXAMPLE = (1999, 2004), 2
EDGES = [(1900, 1900), (2000, 2000), (2005, 1999)]
DRAW = lambda rng: (rng.randint(1800, 2000), rng.randint(1950, 2100))

def count_leap_years(first, last):
    # wrong (2 lines): return max(0, last // 4 - (first - 1) // 4)
    years = range(first, last + 1)
    return sum(year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) for year in years)

"""In the Gregorian calendar a year is a leap year if it is divisible by 4, except that years divisible by 100 are leap
years only if divisible by 400. Define `day_of_year(year, month, day)`: the number of the given day within its year,
where January 1 has number 1."""
EXAMPLE = (2024, 3, 1), 61
EDGES = [(2024, 2, 29), (1900, 12, 31), (2000, 12, 31), (2023, 1, 1)]
DRAW = lambda rng: (rng.randint(1990, 2030), rng.randint(1, 12), rng.randint(1, 28))

def day_of_year(year, month, day):
    lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    # wrong (2 lines): return sum(lengths[: month - 1]) + day + (year % 4 == 0)
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return sum(lengths[: month - 1]) + day + (leap and month > 2)
