DRAW = lambda rng: ("a1",)
EDGES = [("",)]

"""`code` is a sequence of pairs: a lower-case letter and its number (a positive number without leading zeros, possibly
of several digits). Define `expand_letter_first(code)`: the text that has each letter repeated as often as its number
says, in order."""
EXAMPLE = ("a2b10",), "aabbbbbbbbbb"
EDGES = [("z1",), ("x12",)]
DRAW = lambda rng: ("".join(rng.choice("xyz") + str(rng.randint(1, 12)) for _ in range(rng.randint(2, 5))),)

import re


def expand_letter_first(code):
    # wrong: return "".join(letter * int(number) for letter, number in re.findall(r"([a-z])(\d)", code))
    return "".join(letter * int(number) for letter, number in re.findall(r"([a-z])(\d+)", code))

"""`code` is a sequence of pairs: a number and its lower-case letter (a positive number without leading zeros, possibly
of several digits). Define `expand_number_first(code)`: the text that has each letter repeated as often as its number
says, in order."""
EXAMPLE = ("2a10b",), "aabbbbbbbbbb"
EDGES = [("1z",), ("12x",)]
DRAW = lambda rng: ("".join(str(rng.randint(1, 12)) + rng.choice("xyz") for _ in range(rng.randint(2, 5))),)

import re


def expand_number_first(code):
    # wrong: return "".join(letter * int(number) for number, letter in re.findall(r"(\d)([a-z])", code))
    return "".join(letter * int(number) for number, letter in re.findall(r"(\d+)([a-z])", code))
