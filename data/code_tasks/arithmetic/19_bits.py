DRAW = lambda rng: (rng.randint(2, 4000),)
EDGES = [(0,), (1,), (2,), (7,), (64,)]

"""Define `count_one_bits(n)` for a non-negative integer `n`, written in binary without leading zeros (0 is `0`): the
number of its bits that are 1."""
EXAMPLE = (11,), 3

def count_one_bits(n):
    bits = bin(n)[2:]
    # wrong: return len(bits)
    return bits.count("1")

"""Define `trailing_zero_bits(n)` for a non-negative integer `n`, written in binary without leading zeros (0 is `0`):
the number of zeros at its end, 0 if `n` is 0."""
EXAMPLE = (12,), 2

def trailing_zero_bits(n):
    bits = bin(n)[2:]
    # wrong: return bits.count("0")
    return len(bits) - len(bits.rstrip("0")) if n else 0

"""Define `reverse_bits(n)` for a non-negative integer `n`, written in binary without leading zeros (0 is `0`): the
integer whose binary form is that of `n` read backwards (leading zeros dropped)."""
EXAMPLE = (6,), 3

def reverse_bits(n):
    bits = bin(n)[2:]
    # wrong: return int(bits.replace("0", "x").replace("1", "0").replace("x", "1"), 2)
    return int(bits[::-1], 2)

"""Define `widest_bit_gap(n)` for a non-negative integer `n`, written in binary without leading zeros (0 is `0`): the
greatest distance between two neighbouring ones (ones with only zeros, or nothing, between them), where directly
adjacent ones are at distance 1; 0 if it has fewer than two ones."""
EXAMPLE = (37,), 3
EDGES = [(40,)]

def widest_bit_gap(n):
    bits = bin(n)[2:]
    # wrong: return max((len(gap) + 1 for gap in bits.split("1")[1:]), default=0)
    return max((len(gap) + 1 for gap in bits.split("1")[1:-1]), default=0)
