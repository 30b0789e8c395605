from itertools import product

DRAW = lambda rng: (rng.randint(1, 4), rng.randint(2, 8), rng.randint(3, 15))
EDGES = [(0, 6, 1), (1, 6, 6), (1, 6, 7), (3, 2, 4)]

def sums(count, sides):
    return [sum(faces) for faces in product(range(1, sides + 1), repeat=count)]

"""Define `ways_to_roll(count, sides, total_wanted)`: the number of ways in which `count` different dice (at least 0),
each with the numbers 1 to `sides`, can fall so that their sum is exactly `total_wanted`. No dice have the sum 0."""
EXAMPLE = (2, 6, 7), 6
ORACLE = lambda count, sides, wanted: sums(count, sides).count(wanted)

def ways_to_roll(count, sides, total_wanted):
    ways = {0: 1}
    for _ in range(count):
        longer = {}
        for total, number in ways.items():
            for face in range(1, sides + 1):
                longer[total + face] = longer.get(total + face, 0) + number
        ways = longer
    # wrong: return sum(number for total, number in ways.items() if total <= total_wanted)
    return sum(number for total, number in ways.items() if total == total_wanted)

"""Define `ways_to_reach(count, sides, least)`: the number of ways in which `count` different dice (at least 0), each
with the numbers 1 to `sides`, can fall so that their sum is at least `least`. No dice have the sum 0."""
EXAMPLE = (2, 6, 10), 6
ORACLE = lambda count, sides, least: sum(total >= least for total in sums(count, sides))

def ways_to_reach(count, sides, least):
    ways = {0: 1}
    for _ in range(count):
        longer = {}
        for total, number in ways.items():
            for face in range(1, sides + 1):
                longer[total + face] = longer.get(total + face, 0) + number
        ways = longer
    # wrong: return sum(number for total, number in ways.items() if total > least)
    return sum(number for total, number in ways.items() if total >= least)

"""Define `ways_to_divide(count, sides, divisor)`: the number of ways in which `count` different dice (at least 0), each
with the numbers 1 to `sides`, can fall so that their sum is divisible by the positive integer `divisor`. No dice have
the sum 0."""
EXAMPLE = (2, 6, 5), 7
ORACLE = lambda count, sides, divisor: sum(total % divisor == 0 for total in sums(count, sides))

def ways_to_divide(count, sides, divisor):
    ways = {0: 1}
    for _ in range(count):
        longer = {}
        for total, number in ways.items():
            for face in range(1, sides + 1):
                longer[total + face] = longer.get(total + face, 0) + number
        ways = longer
    # wrong: return sum(number for total, number in ways.items() if total % divisor == 1)
    return sum(number for total, number in ways.items() if total % divisor == 0)
