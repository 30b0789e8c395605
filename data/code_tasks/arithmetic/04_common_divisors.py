DRAW = lambda rng: (
    (lambda factor: [factor * rng.randint(1, 12) for _ in range(rng.randint(1, 5))])(rng.randint(1, 6)),
)
EDGES = [([7],), ([1, 1],), ([5, 5],), ([2, 3, 4],)]

"""`numbers` is a non-empty list of positive integers. Define `greatest_common_divisor(numbers)`: the greatest integer
that divides all of them."""
EXAMPLE = ([12, 18, 30],), 6

from math import gcd


def greatest_common_divisor(numbers):
    # wrong: return gcd(numbers[0], numbers[-1])
    return gcd(*numbers)

"""`numbers` is a non-empty list of positive integers. Define `least_common_multiple(numbers)`: the least positive
integer that all of them divide."""
EXAMPLE = ([4, 6, 10],), 60

from math import gcd


def least_common_multiple(numbers):
    result = 1
    for number in numbers:
        # wrong: result = result * number
        result = result * number // gcd(result, number)
    # wrong: return result // gcd(*numbers)
    return result

"""`numbers` is a non-empty list of positive integers. Define `count_coprime_pairs(numbers)`: the number of pairs of
positions i < j whose two numbers have no common divisor but 1."""
EXAMPLE = ([4, 6, 9],), 1
EDGES = [([3, 5, 7],), ([2, 1, 2],)]

from math import gcd


def count_coprime_pairs(numbers):
    # wrong: return sum(gcd(a, b) == 1 for a, b in zip(numbers, numbers[1:]))
    return sum(gcd(a, b) == 1 for i, a in enumerate(numbers) for b in numbers[:i])
