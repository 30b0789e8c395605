DRAW = lambda rng: (sentence(rng, 3, 8).lower(),)
EDGES = [("",), ("one",), ("b a b",)]

"""Words are separated by single spaces in `text`, all in lower-case letters. Define `sort_by_length(text)`: the list of
the words sorted by length, shortest first, and alphabetically among those of one length; the empty text gives `[]`."""
EXAMPLE = ("ccc b aa a",), ["a", "b", "aa", "ccc"]

def sort_by_length(text):
    # wrong: return sorted(text.split(), key=lambda word: len(word))
    return sorted(text.split(), key=lambda word: (len(word), word))

"""Words are separated by single spaces in `text`, all in lower-case letters. Define `sort_by_last_letter(text)`: the
list of the words sorted by their last letter, words with the same last letter in their order in `text`; the empty text
gives `[]`."""
EXAMPLE = ("bz aa ca a",), ["aa", "ca", "a", "bz"]
EDGES = [("banana papa area",)]

def sort_by_last_letter(text):
    # wrong: return sorted(text.split(), key=lambda word: word[::-1])
    return sorted(text.split(), key=lambda word: word[-1])

"""Words are separated by single spaces in `text`, all in lower-case letters. Define `sort_by_vowels(text)`: the list of
the words sorted by how many of their letters are among a, e, i, o, u, fewest first, and alphabetically among words with
equally many; the empty text gives `[]`."""
EXAMPLE = ("see tree a bcd",), ["bcd", "a", "see", "tree"]

def sort_by_vowels(text):
    # wrong: return sorted(text.split(), key=lambda word: sum(letter in "aeiou" for letter in word))
    return sorted(text.split(), key=lambda word: (sum(letter in "aeiou" for letter in word), word))
