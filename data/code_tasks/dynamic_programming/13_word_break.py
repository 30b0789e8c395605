DRAW = lambda rng: (word(rng, "ab", 3, 9), sorted({word(rng, "ab", 1, 3) for _ in range(rng.randint(2, 4))}))
EDGES = [("", ["a"]), ("a", []), ("aaa", ["a", "aa"]), ("abc", ["ab", "bc"])]

def splits(text, words, used=0):
    if not text:
        return [used]
    return [n for word in words if text.startswith(word) for n in splits(text[len(word) :], words, used + 1)]

"""`words` is a list of different non-empty texts. Define `can_split(text, words)`: `True` if `text` can be written as a
sequence of words from the list, one directly after the other, else `False`. Words may be used repeatedly; the empty
text can."""
EXAMPLE = ("aab", ["a", "ab"]), True
EDGES = [("aba", ["ab"]), ("b", ["bb"])]
ORACLE = lambda text, words: bool(splits(text, words))

def can_split(text, words):
    table = [True]
    for end in range(1, len(text) + 1):
        # wrong: shorter = [table[end - len(word)] for word in words if word in text[:end]]
        shorter = [table[end - len(word)] for word in words if text[:end].endswith(word)]
        table.append(any(shorter))
    return table[-1]

"""`words` is a list of different non-empty texts. Define `count_splits(text, words)`: in how many ways `text` can be
written as a sequence of words from the list, one directly after the other. Words may be used repeatedly; there is one
way for the empty text."""
EXAMPLE = ("aab", ["a", "ab", "b"]), 2
ORACLE = lambda text, words: len(splits(text, words))

def count_splits(text, words):
    table = [1]
    for end in range(1, len(text) + 1):
        # wrong: shorter = [table[end - len(word)] for word in words if word in text[:end]]
        shorter = [table[end - len(word)] for word in words if text[:end].endswith(word)]
        table.append(sum(shorter))
    return table[-1]

"""`words` is a list of different non-empty texts. Define `fewest_words(text, words)`: the least number of words from
the list that, written one directly after the other, give `text`, or -1 if that is impossible. Words may be used
repeatedly; the empty text needs 0."""
EXAMPLE = ("aab", ["a", "ab", "b"]), 2
ORACLE = lambda text, words: min(splits(text, words), default=-1)

def fewest_words(text, words):
    table = [0]
    for end in range(1, len(text) + 1):
        # wrong: shorter = [table[end - len(word)] for word in words if word in text[:end]]
        shorter = [table[end - len(word)] for word in words if text[:end].endswith(word)]
        table.append(min((n + 1 for n in shorter if n >= 0), default=-1))
    return table[-1]
