DRAW = lambda rng: lines(*(sentence(rng, 2, 6) for _ in range(rng.randint(1, 3))))
EDGES = ["a\n", "x x x\n"]

"""Write a program that reads all words of the input (separated by spaces or line breaks, at least one word) and prints
for each different word a line with the word, a space and its number of occurrences, the most frequent first, words of
equal frequency in alphabetical order. Upper and lower case are different, capitals coming first in the alphabet."""
EXAMPLE = "b a b\nA a b\n", "b 3\na 2\nA 1"
EDGES = ["b a\n"]

import sys
from collections import Counter

counts = Counter(sys.stdin.read().split())
# wrong: for word, count in sorted(counts.items(), key=lambda item: -item[1]):
for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
    print(f"{word} {count}")

"""Write a program that reads all words of the input (separated by spaces or line breaks, at least one word) and prints
for each different word, in alphabetical order, a line with the word, a colon, a space and as many asterisks as it has
occurrences. Upper and lower case are alike, and words are printed in lower case."""
EXAMPLE = "b a b\nA\n", "a: **\nb: **"
EDGES = ["b a B c\n"]

import sys
from collections import Counter

counts = Counter(sys.stdin.read().lower().split())
# wrong: for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
for word, count in sorted(counts.items(), key=lambda item: item[0]):
    print(f"{word}: {'*' * count}")

"""Write a program that reads all words of the input (separated by spaces or line breaks, at least one word) and prints
the words that occur exactly once, in alphabetical order, one a line (nothing if there are none). Upper and lower case
are different, capitals coming first in the alphabet."""
EXAMPLE = "b a b c\n", "a\nc"

import sys
from collections import Counter

counts = Counter(sys.stdin.read().split())
# wrong: for word, count in sorted(counts.items(), key=lambda item: -ord(item[0][0])):
for word, count in sorted(counts.items(), key=lambda item: item[0]):
    if count == 1:
        print(word)
