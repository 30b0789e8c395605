DRAW = lambda rng: (rng.randint(2, 90),)
EDGES = [(1,), (2,), (3,), (6,), (28,)]

"""The fraction 1 / `n` of a positive integer `n` is written as a decimal number, as in 1/110 = 0.00909... Define
`repetend_length(n)`: the length of the shortest block of digits that repeats without end, 0 if the expansion ends."""
EXAMPLE = (12,), 1

def repetend_length(n):
    remainders, remainder = [], 1 % n
    while remainder and remainder not in remainders:
        remainders.append(remainder)
        remainder = remainder * 10 % n
    # wrong (2 lines): return len(remainders)
    start = remainders.index(remainder) if remainder else len(remainders)
    return len(remainders) - start

"""The fraction 1 / `n` of a positive integer `n` is written as a decimal number, as in 1/110 = 0.00909... Define
`digits_before_repetend(n)`: the number of digits after the point and before the block that repeats without end; if the
expansion ends, the number of all digits after the point (0 for 1)."""
EXAMPLE = (12,), 2

def digits_before_repetend(n):
    remainders, remainder = [], 1 % n
    while remainder and remainder not in remainders:
        remainders.append(remainder)
        remainder = remainder * 10 % n
    start = remainders.index(remainder) if remainder else len(remainders)
    # wrong: return start * bool(remainder)
    return start

"""The fraction 1 / `n` of a positive integer `n` is written as a decimal number, as in 1/110 = 0.00909... Define
`decimal_digits(n)`: the list of the digits after the point up to the end of the first occurrence of the shortest block
that repeats without end, or all of them if the expansion ends (`[]` for 1)."""
EXAMPLE = (12,), [0, 8, 3]
EDGES = [(8,), (7,)]

def decimal_digits(n):
    remainders, remainder = [], 1 % n
    while remainder and remainder not in remainders:
        remainders.append(remainder)
        remainder = remainder * 10 % n
    # wrong: start = remainders.index(remainder) if remainder else len(remainders)
    # wrong: return [remainder * 10 // n for remainder in remainders[:start]] or [1 // n]
    return [remainder * 10 // n for remainder in remainders]
