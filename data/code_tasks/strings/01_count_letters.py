DRAW = lambda rng: (sentence(rng) + rng.choice(["", " 42", "E", "!7?", "-y", "xyz", " 1o1"]),)
EDGES = [("",), ("AEIOU xyz 123",)]

"""Define `count_vowels(text)`: the number of letters among a, e, i, o, u, upper and lower case alike, in `text`."""
EXAMPLE = ("Anna sees",), 4

def count_vowels(text):
    # wrong: return sum(character in "aeiouAEIOU" for character in text[:-1])
    return sum(character in "aeiouAEIOU" for character in text)

"""Define `count_digits(text)`: the number of digits 0 to 9 in `text`."""
EXAMPLE = ("a1b22",), 3

def count_digits(text):
    # wrong: return sum(character in "0123456789" for character in text[:-1])
    return sum(character in "0123456789" for character in text)

"""Define `count_consonants(text)`: the number of English letters (upper or lower case) other than a, e, i, o, u (so y
counts) in `text`."""
EXAMPLE = ("Hello World",), 7

def count_consonants(text):
    # wrong: return sum(character in "bcdfghjklmnpqrstvwxyzBCDFGHJKLMNPQRSTVWXYZ" for character in text[:-1])
    return sum(character in "bcdfghjklmnpqrstvwxyzBCDFGHJKLMNPQRSTVWXYZ" for character in text)
