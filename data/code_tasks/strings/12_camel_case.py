DRAW = lambda rng: (
    word(rng, "xy", 0, 3) + "".join(word(rng, "abc", 1, 4).capitalize() for _ in range(rng.randint(1, 4))),
)
EDGES = [("word",), ("Word",), ("aBCd",), ("ABC",)]

"""`name` is made of English letters. Define `camel_to_snake(name)`: `name` with an underscore before each capital
letter except a first one, all in lower case."""
EXAMPLE = ("maxLineSize",), "max_line_size"

def camel_to_snake(name):
    result = ""
    for i, letter in enumerate(name):
        # wrong: if letter.isupper():
        if letter.isupper() and i > 0:
            result += "_"
        result += letter.lower()
    return result

"""`name` is made of English letters. Define `split_camel(name)`: `name` with a space before each capital letter except
where it is the very first letter."""
EXAMPLE = ("MaxLine",), "Max Line"

def split_camel(name):
    result = ""
    for i, letter in enumerate(name):
        # wrong: if letter.isupper():
        if letter.isupper() and i > 0:
            result += " "
        result += letter
    return result

"""`name` is made of English letters. Define `count_camel_words(name)`: its number of words, where a new word starts at
each capital letter and at the first letter."""
EXAMPLE = ("maxLineSize",), 3

def count_camel_words(name):
    result = ""
    for i, letter in enumerate(name):
        # wrong: if letter.isupper():
        if letter.isupper() and i > 0:
            result += " "
        result += letter
    return len(result.split(" "))
