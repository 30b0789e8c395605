DRAW = lambda rng: (rng.randint(3, 30),)
EDGES = [(0,), (1,), (2,), (4,), (40,)]

"""Define `strings_without_11(n)` for an integer `n` from 0 to 40: the number of texts of `n` characters, each of them 0
or 1, in which no two ones stand next to each other. The empty text counts."""
EXAMPLE = (3,), 5

def strings_without_11(n):
    counts = {"": 1}
    for _ in range(n):
        longer = {}
        for end, count in counts.items():
            for letter in "01":
                text = end + letter
                # wrong: if "111" not in text:
                if "11" not in text:
                    longer[text[-2:]] = longer.get(text[-2:], 0) + count
        counts = longer
    return sum(counts.values())

"""Define `strings_without_triples(n)` for an integer `n` from 0 to 40: the number of texts of `n` characters, each of
them 0 or 1, in which no three neighbouring characters are equal. The empty text counts."""
EXAMPLE = (3,), 6

def strings_without_triples(n):
    counts = {"": 1}
    for _ in range(n):
        longer = {}
        for end, count in counts.items():
            for letter in "01":
                text = end + letter
                # wrong: if len(set(text[-2:])) > 1 or text == letter:
                if "000" not in text and "111" not in text:
                    longer[text[-2:]] = longer.get(text[-2:], 0) + count
        counts = longer
    return sum(counts.values())

"""Define `strings_without_ab_ba(n)` for an integer `n` from 0 to 40: the number of texts of `n` characters, each of
them a, b or c, in which a and b never stand next to each other. The empty text counts."""
EXAMPLE = (2,), 7

def strings_without_ab_ba(n):
    counts = {"": 1}
    for _ in range(n):
        longer = {}
        for end, count in counts.items():
            for letter in "abc":
                text = end + letter
                # wrong: if "ab" not in text:
                if "ab" not in text and "ba" not in text:
                    longer[text[-2:]] = longer.get(text[-2:], 0) + count
        counts = longer
    return sum(counts.values())

"""Define `strings_without_101(n)` for an integer `n` from 0 to 40: the number of texts of `n` characters, each of them
0 or 1, in which the sequence 101 does not occur. The empty text counts."""
EXAMPLE = (3,), 7

def strings_without_101(n):
    counts = {"": 1}
    for _ in range(n):
        longer = {}
        for end, count in counts.items():
            for letter in "01":
                text = end + letter
                # wrong: if "101" not in text and "010" not in text:
                if "101" not in text:
                    longer[text[-2:]] = longer.get(text[-2:], 0) + count
        counts = longer
    return sum(counts.values())
