DRAW = lambda rng: (word(rng, "abc", 2, 4), word(rng, "abc", 3, 8))
EDGES = [("", ""), ("a", ""), ("aa", "a"), ("aab", "baa"), ("", "abc")]

"""Define `is_subsequence(part, text)`: `True` if `part` can be made from `text` by deleting characters, the others
keeping their order, else `False`. The empty `part` always can."""
EXAMPLE = ("ace", "abcde"), True

def is_subsequence(part, text):
    # wrong (2 lines): return all(letter in text for letter in part)
    rest = iter(text)
    return all(letter in rest for letter in part)

"""Define `can_spell(part, text)`: `True` if `part` can be made from `text` by choosing characters in any order, each at
most as often as it occurs in `text`, else `False`. The empty `part` always can."""
EXAMPLE = ("cba", "abc"), True

def can_spell(part, text):
    # wrong: return all(letter in text for letter in part)
    return all(part.count(letter) <= text.count(letter) for letter in part)
