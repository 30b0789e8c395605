DRAW = lambda rng: (word(rng, "abc", 3, 8),)

"""Define `ways_to_pick(text, part)`: in how many ways characters of `text` can be struck out so that `part` remains,
where striking out different positions counts as different; one way if `part` is empty."""
EXAMPLE = ("abab", "ab"), 3
EDGES = [("", ""), ("", "a"), ("abc", ""), ("aaa", "aa"), ("ab", "ba")]
DRAW = lambda rng: (word(rng, "ab", 4, 10), word(rng, "ab", 1, 3))

def ways_to_pick(text, part):
    ways = [1] + [0] * len(part)
    for letter in text:
        # wrong: for i in range(1, len(part) + 1):
        for i in range(len(part), 0, -1):
            if part[i - 1] == letter:
                ways[i] += ways[i - 1]
    return ways[-1]

"""Define `count_different_subsequences(text)`: the number of different texts that remain when any (or none, or all) of
the characters of `text` are struck out, the empty text included."""
EXAMPLE = ("aba",), 7
EDGES = [("",), ("aa",), ("ab",), ("aaa",)]

def count_different_subsequences(text):
    # wrong (4 lines): return 2 ** len(text)
    found = {""}
    for letter in text:
        found |= {part + letter for part in found}
    return len(found)

"""Define `is_interleaving(text, first, second)`: `True` if `text` can be made by merging the texts `first` and
`second`, using up all characters of both, those of each in their order, else `False`."""
EXAMPLE = ("acbd", "ab", "cd"), True
EDGES = [("", "", ""), ("a", "a", ""), ("ab", "b", "a"), ("ba", "ab", ""), ("aab", "ab", "b")]
DRAW = lambda rng: (lambda a, b: ((a + b if rng.random() < 0.5 else "".join(sorted(a + b))), a, b))(
    word(rng, "ab", 1, 4), word(rng, "ab", 1, 4)
)

def is_interleaving(text, first, second):
    # wrong (10 lines): return sorted(text) == sorted(first + second)
    reachable = {(0, 0)}
    for letter in text:
        after = set()
        for i, j in reachable:
            if first[i : i + 1] == letter:
                after.add((i + 1, j))
            if second[j : j + 1] == letter:
                after.add((i, j + 1))
        reachable = after
    return (len(first), len(second)) in reachable
