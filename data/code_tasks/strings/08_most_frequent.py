DRAW = lambda rng: (word(rng, "cabde", 4, 12),)
EDGES = [("",), ("z",)]

"""Define `most_frequent_smallest(text)`: the character that occurs most often in `text`. If several tie, it is the
alphabetically smallest of them. The empty text gives `""`."""
EXAMPLE = ("baab",), "a"

def most_frequent_smallest(text):
    best = ""
    # wrong: for character in text:
    for character in sorted(text):
        if best == "" or text.count(character) > text.count(best):
            best = character
    return best

"""Define `most_frequent_earliest(text)`: the character that occurs most often in `text`. If several tie, it is the one
whose first occurrence comes earliest. The empty text gives `""`."""
EXAMPLE = ("bbaac",), "b"

def most_frequent_earliest(text):
    best = ""
    # wrong: for character in sorted(text):
    for character in text:
        if best == "" or text.count(character) > text.count(best):
            best = character
    return best

"""Define `least_frequent_earliest(text)`: the character that occurs least often in `text`. If several tie, it is the
one whose first occurrence comes earliest. The empty text gives `""`."""
EXAMPLE = ("bcaac",), "b"
EDGES = [("ba",)]

def least_frequent_earliest(text):
    best = ""
    # wrong: for character in sorted(text):
    for character in text:
        if best == "" or text.count(character) < text.count(best):
            best = character
    return best

"""Define `least_frequent_largest(text)`: the character that occurs least often in `text`. If several tie, it is the
alphabetically largest of them. The empty text gives `""`."""
EXAMPLE = ("abbaacc",), "c"
EDGES = [("cab",)]

def least_frequent_largest(text):
    best = ""
    # wrong: for character in sorted(text):
    for character in sorted(text, reverse=True):
        if best == "" or text.count(character) < text.count(best):
            best = character
    return best
