DRAW = lambda rng: (rng.randint(10, 99999),)
EDGES = [(0,), (7,), (10,), (1100,), (321,)]

"""Define `largest_arrangement(n)` for a non-negative integer `n`: the largest integer that its decimal digits can form
in any order."""
EXAMPLE = (302,), 320

def largest_arrangement(n):
    digits = str(n)
    # wrong: return int(digits[::-1])
    return int("".join(sorted(digits, reverse=True)))

"""Define `smallest_arrangement(n)` for a non-negative integer `n`: the smallest integer that its decimal digits can
form in any order with the first digit not 0 (0 itself stays 0)."""
EXAMPLE = (302,), 203

def smallest_arrangement(n):
    digits = str(n)
    # wrong: return int("".join(sorted(digits)))
    return min((int(d + "".join(sorted(digits.replace(d, "", 1)))) for d in digits if d > "0"), default=0)

"""Define `drop_one_digit(n)` for a non-negative integer `n`: the largest integer that remains after striking out
exactly one of its decimal digits (leading zeros vanish); 0 if `n` has one digit."""
EXAMPLE = (3052,), 352

def drop_one_digit(n):
    digits = str(n)
    # wrong: return int(digits.replace(min(digits), "", 1) or "0")
    return max(int(digits[:i] + digits[i + 1 :] or "0") for i in range(len(digits)))
