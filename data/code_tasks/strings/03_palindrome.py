DRAW = lambda rng: (
    (lambda half: half + rng.choice(["", "a", "B", " "]) + half[::-1] + rng.choice(["", "", ".", "A"]))(
        word(rng, "abAB ,1", 1, 4)
    ),
)
EDGES = [("",), ("..",), ("ab",), ("Aa",), ("abca",)]

"""Define `is_exact_palindrome(text)`: `True` if `text` reads the same forwards and backwards, else `False`. Every
character counts, and upper and lower case differ. A text without any character to compare is a palindrome."""
EXAMPLE = ("Level",), False

def is_exact_palindrome(text):
    # wrong: kept = text.lower()
    kept = text
    return kept == kept[::-1]

"""Define `is_letter_palindrome(text)`: `True` if `text` reads the same forwards and backwards, else `False`. Only
letters count, upper and lower case alike. A text without any character to compare is a palindrome."""
EXAMPLE = ("Never odd, or even",), True

def is_letter_palindrome(text):
    # wrong: kept = text.lower()
    kept = [character.lower() for character in text if character.isalpha()]
    return kept == kept[::-1]

"""Define `is_alphanumeric_palindrome(text)`: `True` if `text` reads the same forwards and backwards, else `False`. Only
letters and digits count, upper and lower case alike. A text without any character to compare is a palindrome."""
EXAMPLE = ("1a2 B2A1.",), True
EDGES = [("12",), ("1.2 1",)]

def is_alphanumeric_palindrome(text):
    # wrong: kept = [character.lower() for character in text if character.isalpha()]
    kept = [character.lower() for character in text if character.isalnum()]
    return kept == kept[::-1]
