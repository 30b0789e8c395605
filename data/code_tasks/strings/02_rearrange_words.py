DRAW = lambda rng: (sentence(rng),)
EDGES = [("",), ("single",)]

"""Words are separated by single spaces in `text`. Define `reverse_word_order(text)`: `text` with its words in reverse
order. An empty text stays empty."""
EXAMPLE = ("one two",), "two one"

def reverse_word_order(text):
    # wrong: return text[::-1]
    return " ".join(text.split(" ")[::-1])

"""Words are separated by single spaces in `text`. Define `reverse_each_word(text)`: `text` with the letters of each
word reversed, the words staying in their places. An empty text stays empty."""
EXAMPLE = ("one two",), "eno owt"

def reverse_each_word(text):
    # wrong: return text[::-1]
    return " ".join(word[::-1] for word in text.split(" "))

"""Words are separated by single spaces in `text`. Define `rotate_words(text)`: `text` with its first word moved to the
end. An empty text stays empty."""
EXAMPLE = ("one two six",), "two six one"

def rotate_words(text):
    # wrong: return " ".join(text.split(" ")[-1:] + text.split(" ")[:-1])
    return " ".join(text.split(" ")[1:] + text.split(" ")[:1])

"""Words are separated by single spaces in `text`. Define `reverse_odd_words(text)`: `text` with the letters of every
second word reversed (the second, the fourth, ... word). An empty text stays empty."""
EXAMPLE = ("one two six",), "one owt six"

def reverse_odd_words(text):
    # wrong: return " ".join(word if i % 2 else word[::-1] for i, word in enumerate(text.split(" ")))
    return " ".join(word[::-1] if i % 2 else word for i, word in enumerate(text.split(" ")))
