DRAW = lambda rng: lines(
    *(rng.choice(["", sentence(rng, 1, 5), sentence(rng, 2, 5)]) for _ in range(rng.randint(2, 5)))
)
EDGES = ["\n", "one\n", "a  b   c\n\n\nd e\n"]

"""Write a program that reads lines of text until the end of the input and prints one line with the number of lines
(empty ones included) and the number of words, separated by a space. Words are separated by one or more spaces; a line
may be empty, and each ends with a line break."""
EXAMPLE = "a b\n\nc\n", "3 3"

import sys

rows = sys.stdin.read().splitlines()
# wrong: print(len(rows), sum(row.count(" ") + 1 for row in rows))
print(len(rows), sum(len(row.split()) for row in rows))

"""Write a program that reads lines of text until the end of the input and prints the lines in reverse order, in each
line the words in reverse order with single spaces between them (an empty line for an empty one). Words are separated by
one or more spaces; a line may be empty, and each ends with a line break."""
EXAMPLE = "a b\n\nc\n", "c\n\nb a"

import sys

rows = sys.stdin.read().splitlines()
# wrong: for row in rows:
for row in rows[::-1]:
    print(" ".join(row.split()[::-1]))

"""Write a program that reads lines of text until the end of the input and prints each line that has a word, unchanged,
after its number, a colon and a space, where only these lines are numbered, from 1 (nothing at all if there is no such
line). Words are separated by one or more spaces; a line may be empty, and each ends with a line break."""
EXAMPLE = "ab c\n\nd\n", "1: ab c\n2: d"

import sys

rows = sys.stdin.read().splitlines()
# wrong (2 lines): for number, row in enumerate(rows, 1):
filled = [row for row in rows if row.split()]
for number, row in enumerate(filled, 1):
    print(f"{number}: {row}")
