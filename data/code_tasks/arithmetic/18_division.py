DRAW = lambda rng: (rng.randint(-60, 60), rng.choice([-7, -4, -3, -2, 2, 3, 4, 6]))
EDGES = [(0, 5), (5, 2), (-5, -2), (6, -3), (7, -2), (10**20 + 1, 2)]

"""Define `divide_toward_zero(a, b)` for integers `a` and `b`, `b` not 0, without floating-point error even for very
large numbers: the quotient a / b rounded towards zero, as an integer."""
EXAMPLE = (-7, 2), -3

def divide_toward_zero(a, b):
    # wrong (2 lines): return a // b
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient

"""Define `divide_upward(a, b)` for integers `a` and `b`, `b` not 0, without floating-point error even for very large
numbers: the quotient a / b rounded up to the next integer unless it is one, as an integer."""
EXAMPLE = (7, 2), 4

def divide_upward(a, b):
    # wrong: return a // b + 1
    return -(-a // b)

"""Define `divide_half_up(a, b)` for integers `a` and `b`, `b` not 0, without floating-point error even for very large
numbers: the quotient a / b rounded to the nearest integer, halves upward (7.5 gives 8, -7.5 gives -7), as an
integer."""
EXAMPLE = (-5, 2), -2

def divide_half_up(a, b):
    # wrong: return round(a / b)
    return (2 * a + b) // (2 * b)
