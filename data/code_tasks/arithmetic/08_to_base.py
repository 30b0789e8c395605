DRAW = lambda rng: (rng.randint(1, 5000),)

"""Define `to_base_3(n)`: the non-negative integer `n` written in base 3, as a text without leading zeros (0 is
`"0"`)."""
EXAMPLE = (5,), "12"
EDGES = [(0,), (1,), (3,), (27,)]

def to_base_3(n):
    result = ""
    # wrong: while n >= 3:
    while n > 0:
        n, digit = divmod(n, 3)
        result = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + result
    # wrong: return result or str(n)
    return result or "0"

"""Define `to_base_13(n)`: the non-negative integer `n` written in base 13, as a text without leading zeros (0 is
`"0"`). The digits from ten on are a, b and c."""
EXAMPLE = (100,), "79"
EDGES = [(0,), (12,), (13,), (1000,)]

def to_base_13(n):
    result = ""
    # wrong: while n >= 13:
    while n > 0:
        n, digit = divmod(n, 13)
        result = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + result
    # wrong: return result or str(n)
    return result or "0"

"""Define `to_any_base(n, base)`: the non-negative integer `n` written in base `base` (from 2 to 36), as a text without
leading zeros (0 is `"0"`). The digits from ten on are a, b, c and so on."""
EXAMPLE = (31, 16), "1f"
EDGES = [(0, 2), (35, 36), (8, 2)]
DRAW = lambda rng: (rng.randint(1, 5000), rng.randint(2, 36))

def to_any_base(n, base):
    result = ""
    # wrong: while n >= base:
    while n > 0:
        n, digit = divmod(n, base)
        result = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + result
    # wrong: return result or str(n)
    return result or "0"
