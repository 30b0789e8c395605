DRAW = lambda rng: (lambda text: (text, "".join(rng.sample(text, len(text))) + rng.choice(["", "", " ", "a", "A"])))(
    word(rng, "aAbB  c", 3, 8)
)
EDGES = [("", ""), ("aab", "abb"), ("ab", "ba"), ("a", ""), ("ab b", "ab  b")]

"""Define `are_exact_anagrams(first, second)`: `True` if the two texts have the same characters, each equally often,
else `False`. Upper and lower case differ, and spaces count."""
EXAMPLE = ("Tea", "eat"), False

# wrong (3 lines):
from collections import Counter


def are_exact_anagrams(first, second):
    # wrong: return set(first) == set(second)
    return Counter(first) == Counter(second)

"""Define `are_letter_anagrams(first, second)`: `True` if the two texts have the same characters other than spaces, each
equally often, else `False`. Upper and lower case are alike."""
EXAMPLE = ("Tea time", "Eat Item"), True

# wrong (3 lines):
from collections import Counter


def are_letter_anagrams(first, second):
    # wrong: return set(first.lower().replace(" ", "")) == set(second.lower().replace(" ", ""))
    return Counter(first.lower().replace(" ", "")) == Counter(second.lower().replace(" ", ""))

"""Define `are_word_anagrams(first, second)`: `True` if the two texts have the same words (separated by one or more
spaces), each equally often, else `False`. Upper and lower case differ."""
EXAMPLE = ("a b a", "b a a"), True
DRAW = lambda rng: (
    lambda words: (
        " ".join(words),
        " ".join(rng.sample(words, len(words)) + rng.choice([[], [], ["a"]])),
    )
)(rng.choices(["a", "A", "bc", "cb"], k=rng.randint(2, 5)))

# wrong (3 lines):
from collections import Counter


def are_word_anagrams(first, second):
    # wrong: return set(first.split()) == set(second.split())
    return Counter(first.split()) == Counter(second.split())
