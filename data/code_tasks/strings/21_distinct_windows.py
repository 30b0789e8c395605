DRAW = lambda rng: (word(rng, "ab" if rng.random() < 0.5 else "abc", 4, 14), rng.randint(1, 4))
EDGES = [("", 1), ("ab", 3), ("aaaa", 2), ("abc", 3)]

"""Define `count_distinct_parts(text, size)`: the number of different substrings of `text` that have exactly `size`
characters. `size` is at least 1; a text shorter than that has none."""
EXAMPLE = ("abab", 2), 2

def count_distinct_parts(text, size):
    # wrong: parts = {text[i : i + size] for i in range(len(text) - size)}
    parts = {text[i : i + size] for i in range(len(text) - size + 1)}
    return sum(1 for part in parts)

"""Define `count_palindromic_parts(text, size)`: the number of different substrings of `text` that have exactly `size`
characters and read the same backwards. `size` is at least 1; a text shorter than that has none."""
EXAMPLE = ("abaab", 3), 1

def count_palindromic_parts(text, size):
    # wrong: parts = {text[i : i + size] for i in range(len(text) - size)}
    parts = {text[i : i + size] for i in range(len(text) - size + 1)}
    return sum(part == part[::-1] for part in parts)

"""Define `count_varied_parts(text, size)`: the number of different substrings of `text` that have exactly `size`
characters and hold no character twice. `size` is at least 1; a text shorter than that has none."""
EXAMPLE = ("abac", 2), 3

def count_varied_parts(text, size):
    # wrong: parts = {text[i : i + size] for i in range(len(text) - size)}
    parts = {text[i : i + size] for i in range(len(text) - size + 1)}
    return sum(len(set(part)) == size for part in parts)
