DRAW = lambda rng: (word(rng, "abcd", 4, 12),)
EDGES = [("",), ("aaa",), ("abca",)]

"""Define `keep_first_occurrences(text)`: `text` without every character that already occurred earlier in it (the first
occurrence of each stays), the remaining characters in their order."""
EXAMPLE = ("abcabb",), "abc"

def keep_first_occurrences(text):
    # wrong: return "".join(letter for i, letter in enumerate(text) if i == 0 or letter != text[i - 1])
    return "".join(letter for i, letter in enumerate(text) if letter not in text[:i])

"""Define `keep_last_occurrences(text)`: `text` without every character that occurs again later in it (the last
occurrence of each stays), the remaining characters in their order."""
EXAMPLE = ("abcabb",), "cab"

def keep_last_occurrences(text):
    # wrong: return "".join(letter for i, letter in enumerate(text) if letter not in text[:i])
    return "".join(letter for i, letter in enumerate(text) if letter not in text[i + 1 :])

"""Define `squeeze(text)`: `text` without every character that equals the one directly before it in `text`, the
remaining characters in their order."""
EXAMPLE = ("aabcca",), "abca"

def squeeze(text):
    # wrong: return "".join(letter for i, letter in enumerate(text) if letter not in text[:i])
    return "".join(letter for i, letter in enumerate(text) if i == 0 or letter != text[i - 1])

"""Define `keep_unique(text)`: `text` without all characters that occur in it more than once, the remaining characters
in their order."""
EXAMPLE = ("aabcd",), "bcd"

def keep_unique(text):
    # wrong: return "".join(letter for i, letter in enumerate(text) if letter not in text[:i])
    return "".join(letter for i, letter in enumerate(text) if text.count(letter) == 1)
