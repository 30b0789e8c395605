DRAW = lambda rng: (str(rng.randint(1, 2)) + "".join(rng.choice("012") for _ in range(rng.randint(1, 6))),)

"""Define `from_base_3(text)`: the integer that `text` means when read as digits 0, 1 and 2 in base 3, the first digit
counting most."""
EXAMPLE = ("102",), 11
EDGES = [("0",), ("2",), ("0010",)]

def from_base_3(text):
    result = 0
    for digit in text:
        # wrong: result = (result + int(digit)) * 3
        result = result * 3 + int(digit)
    return result

"""Define `from_twos_complement(text)`: the integer that `text` means when read as a binary number in two's complement:
the first of its bits counts negatively, so that `"1011"` would be -8 + 2 + 1."""
EXAMPLE = ("1001",), -7
EDGES = [("0",), ("1",), ("1111",), ("0111",)]
DRAW = lambda rng: ("".join(rng.choice("01") for _ in range(rng.randint(3, 9))),)

def from_twos_complement(text):
    result = 0
    for i, bit in enumerate(text):
        # wrong: result = result * 2 + int(bit)
        result = result * 2 + (-int(bit) if i == 0 else int(bit))
    return result

"""Define `from_negabinary(text)`: the integer that `text` means when read as bits in base -2: the last one counts 1,
the one before -2, the one before that 4, then -8 and so on."""
EXAMPLE = ("110",), 2
EDGES = [("0",), ("1",), ("10",), ("11",)]
DRAW = lambda rng: ("".join(rng.choice("01") for _ in range(rng.randint(3, 9))),)

def from_negabinary(text):
    result = 0
    for bit in text:
        # wrong: result = result * 2 + int(bit)
        result = result * -2 + int(bit)
    return result
