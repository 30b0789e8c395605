DRAW = lambda rng: (word(rng, "abcd", 5, 14),)
EDGES = [("",), ("aaa",), ("abba",)]

"""Consider the stretches of neighbouring characters in `text` that hold no character twice. Define
`longest_distinct_length(text)`: the length of the longest one, 0 if `text` is empty."""
EXAMPLE = ("abcab",), 3

def longest_distinct_length(text):
    best = ""
    for start in range(len(text)):
        end = start
        while end < len(text) and text[end] not in text[start:end]:
            end += 1
        # wrong: if end - start >= len(best):
        if end - start > len(best):
            best = text[start:end]
    # wrong: return len(set(text))
    return len(best)

"""Consider the stretches of neighbouring characters in `text` that hold no character twice. Define
`longest_distinct_part(text)`: the longest one, the leftmost if several tie, `""` if `text` is empty."""
EXAMPLE = ("abcab",), "abc"

def longest_distinct_part(text):
    best = ""
    for start in range(len(text)):
        end = start
        while end < len(text) and text[end] not in text[start:end]:
            end += 1
        # wrong: if end - start >= len(best):
        if end - start > len(best):
            best = text[start:end]
    return best

"""Consider the stretches of neighbouring characters in `text` that hold at most two different characters. Define
`longest_two_letter_part(text)`: the longest one, the leftmost if several tie, `""` if `text` is empty."""
EXAMPLE = ("abacc",), "aba"

def longest_two_letter_part(text):
    best = ""
    for start in range(len(text)):
        end = start
        while end < len(text) and len(set(text[start : end + 1])) <= 2:
            end += 1
        # wrong: if end - start >= len(best):
        if end - start > len(best):
            best = text[start:end]
    return best
