DRAW = lambda rng: (
    (lambda core: [core + word(rng, "ab", 0, 3) + core[::-1] for _ in range(rng.randint(1, 4))])(
        word(rng, "xyz", 0, 4)
    ),
)
EDGES = [([],), (["same"],), (["ab", "ab"],), (["a", ""],), (["ab", "cd"],)]

"""Define `common_prefix(words)`: the longest text that every word of the list `words` starts with. It may be empty; the
empty list gives `""`."""
EXAMPLE = (["flow", "flock", "fly"],), "fl"

def common_prefix(words):
    if not words:
        return ""
    length = 0
    # wrong: while all(length < len(word) - 1 and word[length] == words[0][length] for word in words):
    while all(length < len(word) and word[length] == words[0][length] for word in words):
        length += 1
    return words[0][:length]

"""Define `common_suffix(words)`: the longest text that every word of the list `words` ends with. It may be empty; the
empty list gives `""`."""
EXAMPLE = (["singing", "ring", "king"],), "ing"

def common_suffix(words):
    if not words:
        return ""
    length = 0
    # wrong: while all(length < len(word) - 1 and word[-length - 1] == words[0][-length - 1] for word in words):
    while all(length < len(word) and word[-length - 1] == words[0][-length - 1] for word in words):
        length += 1
    return words[0][len(words[0]) - length :]
