DRAW = lambda rng: (sentence(rng),)
EDGES = [("",), ("   ",), ("ab  cd",)]

"""Words are separated by one or more spaces in `text`. Define `first_longest_word(text)`: the longest word, the first
if several have that length, `""` if there is no word."""
EXAMPLE = ("a bc de",), "bc"

def first_longest_word(text):
    result = ""
    for word in text.split():
        # wrong: if result == "" or len(word) >= len(result):
        if result == "" or len(word) > len(result):
            result = word
    return result

"""Words are separated by one or more spaces in `text`. Define `last_longest_word(text)`: the longest word, the last if
several have that length, `""` if there is no word."""
EXAMPLE = ("a bc de",), "de"

def last_longest_word(text):
    result = ""
    for word in text.split():
        # wrong: if result == "" or len(word) > len(result):
        if result == "" or len(word) >= len(result):
            result = word
    return result

"""Words are separated by one or more spaces in `text`. Define `first_shortest_word(text)`: the shortest word, the first
if several have that length, `""` if there is no word."""
EXAMPLE = ("abc d e",), "d"

def first_shortest_word(text):
    result = ""
    for word in text.split():
        # wrong: if result == "" or len(word) <= len(result):
        if result == "" or len(word) < len(result):
            result = word
    return result
