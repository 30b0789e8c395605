DRAW = lambda rng: tuple((rng.randint(-12, 12), rng.choice([-6, -4, -3, 2, 3, 4, 6, 9])) for _ in range(2))
EDGES = [((0, 5), (0, -3)), ((1, 2), (1, 2)), ((-1, -2), (1, 2)), ((5, 1), (4, 8))]

"""A fraction is a tuple (numerator, denominator) of integers; arguments have denominators other than 0, maybe negative
ones. Define `add_fractions(first, second)`: their sum, in lowest terms and with a positive denominator; zero is `(0,
1)`."""
EXAMPLE = ((1, 6), (1, -2)), (-1, 3)

from math import gcd


def add_fractions(first, second):
    (a, b), (c, d) = first, second
    numerator, denominator = a * d + c * b, b * d
    divisor = gcd(numerator, denominator)
    # wrong (2 lines):
    if denominator < 0:
        divisor = -divisor
    return (numerator // divisor, denominator // divisor)

"""A fraction is a tuple (numerator, denominator) of integers; arguments have denominators other than 0, maybe negative
ones. Define `subtract_fractions(first, second)`: the first minus the second, in lowest terms and with a positive
denominator; zero is `(0, 1)`."""
EXAMPLE = ((1, 6), (1, 2)), (-1, 3)

from math import gcd


def subtract_fractions(first, second):
    (a, b), (c, d) = first, second
    numerator, denominator = a * d - c * b, b * d
    divisor = gcd(numerator, denominator)
    # wrong (2 lines):
    if denominator < 0:
        divisor = -divisor
    return (numerator // divisor, denominator // divisor)

"""A fraction is a tuple (numerator, denominator) of integers; arguments have denominators other than 0, maybe negative
ones. Define `multiply_fractions(first, second)`: their product, in lowest terms and with a positive denominator; zero
is `(0, 1)`."""
EXAMPLE = ((2, 3), (3, -4)), (-1, 2)

from math import gcd


def multiply_fractions(first, second):
    (a, b), (c, d) = first, second
    numerator, denominator = a * c, b * d
    divisor = gcd(numerator, denominator)
    # wrong (2 lines):
    if denominator < 0:
        divisor = -divisor
    return (numerator // divisor, denominator // divisor)

"""A fraction is a tuple (numerator, denominator) of integers; arguments have denominators other than 0, maybe negative
ones. Define `mean_of_fractions(first, second)`: their arithmetic mean, in lowest terms and with a positive denominator;
zero is `(0, 1)`."""
EXAMPLE = ((2, 6), (1, 2)), (5, 12)

from math import gcd


def mean_of_fractions(first, second):
    (a, b), (c, d) = first, second
    numerator, denominator = a * d + c * b, 2 * b * d
    divisor = gcd(numerator, denominator)
    # wrong (2 lines):
    if denominator < 0:
        divisor = -divisor
    return (numerator // divisor, denominator // divisor)
