DRAW = lambda rng: (
    rng.choice(["([{}])", "(<>)", "()[]", "(x[y]z)", "{()}[]", "((a))", "<[]>"])[: rng.randint(3, 6)]
    + rng.choice(["", "", ")", "()", "(", "]", "{}", "<"]),
)
EDGES = [("",), (")(",), ("((",), ("no brackets",), ("(()())",)]

"""Define `round_balanced(text)`: `True` if the brackets ( and ) in `text` are balanced, else `False`: each closing
bracket closes the most recently opened one that is still open, which must be of its kind, and none stays open. All
other characters are ignored; a text without brackets is balanced."""
EXAMPLE = ("(a[b)]",), True

def round_balanced(text):
    opened = []
    for character in text:
        if character in "(":
            opened.append(character)
        elif character in ")":
            kind = "("[")".index(character)]
            if not opened or opened.pop() != kind:
                return False
    # wrong: return True
    return not opened

"""Define `brackets_balanced(text)`: `True` if the brackets ( ), [ ] and { } in `text` are balanced, else `False`: each
closing bracket closes the most recently opened one that is still open, which must be of its kind, and none stays open.
All other characters are ignored; a text without brackets is balanced."""
EXAMPLE = ("(a[b)]",), False

def brackets_balanced(text):
    opened = []
    for character in text:
        if character in "([{":
            opened.append(character)
        elif character in ")]}":
            kind = "([{"[")]}".index(character)]
            if not opened or opened.pop() != kind:
                return False
    # wrong: return True
    return not opened

"""Define `angles_balanced(text)`: `True` if the brackets ( ) and < > in `text` are balanced, else `False`: each closing
bracket closes the most recently opened one that is still open, which must be of its kind, and none stays open. All
other characters are ignored; a text without brackets is balanced."""
EXAMPLE = ("<(>)",), False

def angles_balanced(text):
    opened = []
    for character in text:
        if character in "(<":
            opened.append(character)
        elif character in ")>":
            kind = "(<"[")>".index(character)]
            if not opened or opened.pop() != kind:
                return False
    # wrong: return True
    return not opened
