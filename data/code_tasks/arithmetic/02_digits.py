DRAW = lambda rng: (rng.randint(10, 10 ** rng.randint(2, 7)),)
EDGES = [(0,), (7,), (10,), (1000,), (999,)]

"""Define `digit_sum(n)`: the sum of the decimal digits of the non-negative integer `n`."""
EXAMPLE = (507,), 12

def digit_sum(n):
    digits = [int(digit) for digit in str(n)]
    # wrong: return sum(set(digits))
    return sum(digits)

"""Define `alternating_digit_sum(n)`: the alternating sum (the first minus the second plus the third and so on, from the
left) of the decimal digits of the non-negative integer `n`."""
EXAMPLE = (5073,), 9

def alternating_digit_sum(n):
    digits = [int(digit) for digit in str(n)]
    # wrong: return sum(digits[::-2]) - sum(digits[-2::-2])
    return sum(digits[::2]) - sum(digits[1::2])

"""Define `digit_spread(n)`: the largest minus the smallest of the decimal digits of the non-negative integer `n`."""
EXAMPLE = (5073,), 7

def digit_spread(n):
    digits = [int(digit) for digit in str(n)]
    # wrong: return abs(digits[0] - digits[-1])
    return max(digits) - min(digits)

"""Define `count_distinct_digits(n)`: the number of different values of the decimal digits of the non-negative integer
`n`."""
EXAMPLE = (50733,), 4

def count_distinct_digits(n):
    digits = [int(digit) for digit in str(n)]
    # wrong: return len(digits)
    return len(set(digits))
