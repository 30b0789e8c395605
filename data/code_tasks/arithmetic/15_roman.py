DRAW = lambda rng: (rng.randint(1, 3999),)

"""Roman numerals use I, V, X, L, C, D and M for 1, 5, 10, 50, 100, 500 and 1000, with IV, IX, XL, XC, CD and CM for 4,
9, 40, 90, 400 and 900. Define `to_roman(n)`: `n`, from 1 to 3999, as a Roman numeral."""
EXAMPLE = (1994,), "MCMXCIV"
EDGES = [(1,), (4,), (3999,)]

PARTS = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"),
         (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]


def to_roman(n):
    result = ""
    for value, part in PARTS:
        # wrong: if n >= value:
        while n >= value:
            result += part
            n -= value
    return result

"""Roman numerals use I, V, X, L, C, D and M for 1, 5, 10, 50, 100, 500 and 1000, with IV, IX, XL, XC, CD and CM for 4,
9, 40, 90, 400 and 900. Define `from_roman(numeral)`: the integer that `numeral`, a correct numeral from I to MMMCMXCIX,
stands for."""
EXAMPLE = ("MCMXCIV",), 1994
EDGES = [("I",), ("IX",), ("XLII",), ("MMMCMXCIX",), ("VIII",)]
DRAW = lambda rng: (
    rng.choice(["", "M", "MM"])
    + rng.choice(["", "C", "CD", "D", "DCC", "CM"])
    + rng.choice(["", "X", "XL", "LX", "XC"])
    + rng.choice(["I", "III", "IV", "VI", "IX"]),
)

PARTS = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"),
         (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]


def from_roman(numeral):
    result = 0
    for value, part in PARTS:
        # wrong (3 lines): result += value * numeral.count(part)
        while numeral.startswith(part):
            result += value
            numeral = numeral[len(part) :]
    return result
