DRAW = lambda rng: (word(rng, "ab", 6, 14), rng.choice(["a", "aa", "aba", "bb", "abab", "aaa"]))
EDGES = [("", "a"), ("aaa", "aa"), ("abc", "abcd"), ("abababa", "aba")]

"""Define `count_overlapping(text, part)`: how often `part` occurs in `text`, where occurrences may overlap. `part` is
not empty."""
EXAMPLE = ("aaaa", "aa"), 3

def count_overlapping(text, part):
    count, start = 0, text.find(part)
    while start != -1:
        count += 1
        # wrong: start = text.find(part, start + len(part))
        start = text.find(part, start + 1)
    return count

"""Define `count_disjoint(text, part)`: how often `part` occurs in `text`, taken from left to right without overlap: the
search goes on behind each occurrence found. `part` is not empty."""
EXAMPLE = ("aaaaa", "aa"), 2

def count_disjoint(text, part):
    count, start = 0, text.find(part)
    while start != -1:
        count += 1
        # wrong: start = text.find(part, start + 1)
        start = text.find(part, start + len(part))
    return count
