DRAW = lambda rng: (rng.randint(1, 9999),)
EDGES = [(1,), (9,), (10,), (99,), (999,)]

"""Start with the positive integer `n` and repeatedly replace the number by the sum of its decimal digits. Define
`digital_root(n)`: the first number below 10 that is reached, `n` itself if it is below 10."""
EXAMPLE = (95,), 5

def digital_root(n):
    seen = []
    while n > 9:
        seen.append(n)
        n = sum(int(digit) for digit in str(n))
    # wrong: return n % 9
    return n

"""Start with the positive integer `n` and repeatedly replace the number by the product of its decimal digits. Define
`multiplicative_persistence(n)`: how many replacements it takes until the number is below 10, 0 if it is from the
start."""
EXAMPLE = (39,), 3

from math import prod


def multiplicative_persistence(n):
    seen = []
    while n > 9:
        seen.append(n)
        n = prod(map(int, str(n)))
    # wrong: return max(len(seen), 1)
    return len(seen)

"""Start with the positive integer `n` and repeatedly replace the number by the sum of the squares of its decimal
digits. Define `is_happy(n)`: `True` if the number 1 is ever reached, else `False`."""
EXAMPLE = (19,), True
EDGES = [(4,), (2,), (7,)]

def is_happy(n):
    seen = []
    while n not in seen:
        seen.append(n)
        n = sum(int(digit) ** 2 for digit in str(n))
    # wrong: return len(seen) < 5
    return n == 1
