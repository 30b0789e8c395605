DRAW = lambda rng: ("".join(rng.choice("abc ") * rng.choice([1, 2, 2, 3]) for _ in range(rng.randint(2, 7))),)
EDGES = [("",), ("abc",), ("abab",), ("aaba",)]

"""A run is a longest possible stretch of equal neighbouring characters. Define `longest_run_length(text)`: the length
of the longest run in `text`, 0 if `text` is empty."""
EXAMPLE = ("abbcc",), 2

from itertools import groupby


def longest_run_length(text):
    best, best_length = "", 0
    for character, group in groupby(text):
        length = len(list(group))
        if length > best_length:
            best, best_length = character, length
    # wrong: return max(map(text.count, text), default=0)
    return best_length

"""A run is a longest possible stretch of equal neighbouring characters. Define `first_longest_run(text)`: the character
of the longest run in `text`, the first such run if several tie, `""` if `text` is empty."""
EXAMPLE = ("abbcc",), "b"

from itertools import groupby


def first_longest_run(text):
    best, best_length = "", 0
    for character, group in groupby(text):
        length = len(list(group))
        # wrong: if length >= best_length:
        if length > best_length:
            best, best_length = character, length
    return best

"""A run is a longest possible stretch of equal neighbouring characters. Define `last_longest_run(text)`: the longest
run in `text` itself, the last such run if several tie, `""` if `text` is empty."""
EXAMPLE = ("abbcc",), "cc"

from itertools import groupby


def last_longest_run(text):
    best, best_length = "", 0
    for character, group in groupby(text):
        length = len(list(group))
        # wrong: if length > best_length:
        if length >= best_length:
            best, best_length = character, length
    return best * best_length
