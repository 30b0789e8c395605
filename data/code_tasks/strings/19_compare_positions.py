DRAW = lambda rng: (word(rng, "abc", 2, 8), word(rng, "abc", 2, 8))
EDGES = [("", ""), ("", "ab"), ("aba", "aba")]

"""Define `padded_distance(first, second)`: the number of positions at which the two texts differ; a position that only
the longer one has counts as a difference."""
EXAMPLE = ("abcd", "abd"), 2

def padded_distance(first, second):
    # wrong: return sum(a != b for a, b in zip(first, second))
    return sum(a != b for a, b in zip(first, second)) + abs(len(first) - len(second))

"""Define `matching_positions(first, second)`: the list of the positions (counted from 0) that both texts have and at
which they agree."""
EXAMPLE = ("abcd", "xbcdd"), [1, 2, 3]

def matching_positions(first, second):
    # wrong: return [i for i, a in enumerate(first) if a in second]
    return [i for i, (a, b) in enumerate(zip(first, second)) if a == b]

"""Define `interleave_texts(first, second)`: the first character of `first`, the first of `second`, the second of
`first` and so on; when one is used up, the rest of the other follows."""
EXAMPLE = ("abc", "xyzuv"), "axbyczuv"

def interleave_texts(first, second):
    # wrong: return "".join(a + b for a, b in zip(first, second))
    return "".join(first[i : i + 1] + second[i : i + 1] for i in range(max(len(first), len(second))))
