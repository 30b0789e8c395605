DRAW = lambda rng: ("".join(rng.choice("abcd") * rng.choice([1, 1, 2, 3, 11]) for _ in range(rng.randint(2, 5))),)
EDGES = [("",), ("a",), ("abab",)]

"""A run is a longest possible stretch of equal neighbouring characters. Define `run_length_encode(text)`: each run of
`text` written as its character and its length, joined. The empty text gives `""`."""
EXAMPLE = ("aab",), "a2b1"

from itertools import groupby


def run_length_encode(text):
    # wrong: runs = [(character, len(list(group))) for character, group in groupby(sorted(text))]
    runs = [(character, len(list(group))) for character, group in groupby(text)]
    return "".join(f"{character}{count}" for character, count in runs)

"""A run is a longest possible stretch of equal neighbouring characters. Define `short_run_lengths(text)`: each run of
`text` written as its length and its character, joined; the length is left out where it is 1. The empty text gives
`""`."""
EXAMPLE = ("aaba",), "2aba"

from itertools import groupby


def short_run_lengths(text):
    # wrong: runs = [(character, len(list(group))) for character, group in groupby(sorted(text))]
    runs = [(character, len(list(group))) for character, group in groupby(text)]
    return "".join((str(count) if count > 1 else "") + character for character, count in runs)

"""A run is a longest possible stretch of equal neighbouring characters. Define `list_runs(text)`: the list of the runs
of `text` in order, each as a tuple (character, length). The empty text gives `[]`."""
EXAMPLE = ("aaba",), [("a", 2), ("b", 1), ("a", 1)]

from itertools import groupby


def list_runs(text):
    # wrong: runs = [(character, len(list(group))) for character, group in groupby(sorted(text))]
    runs = [(character, len(list(group))) for character, group in groupby(text)]
    return runs

"""A run is a longest possible stretch of equal neighbouring characters. Define `run_lengths(text)`: the list of the
lengths of the runs of `text`, in order. The empty text gives `[]`."""
EXAMPLE = ("aaba",), [2, 1, 1]

from itertools import groupby


def run_lengths(text):
    # wrong: runs = [(character, len(list(group))) for character, group in groupby(sorted(text))]
    runs = [(character, len(list(group))) for character, group in groupby(text)]
    return [count for _, count in runs]
