DRAW = lambda rng: (lambda names: lines(len(names), *((name, rng.randint(1, 3) * 10) for name in names)))(
    rng.sample(["Ada", "Bob", "Cy", "Dan", "Eve", "Flo"], rng.randint(2, 6))
)
EDGES = ["1\nZed 0\n", "4\nA 7\nB 7\nC 9\nD 7\n"]

"""The first line of the input is a positive integer n, followed by n lines, each with a name (letters only, no name
twice) and an integer score, separated by a space. Write a program that prints one line per name with the rank and the
name, separated by a space: highest score first, equal scores in alphabetical order of the names. The rank is 1 plus the
number of names with a higher score (as in 1, 1, 3)."""
EXAMPLE = "3\nBo 5\nAl 5\nCy 2\n", "1 Al\n1 Bo\n3 Cy"

rows = [input().split() for _ in range(int(input()))]
scores = {name: int(score) for name, score in rows}
for name in sorted(scores, key=lambda name: (-scores[name], name)):
    # wrong: rank = 1 + len({score for score in scores.values() if score > scores[name]})
    rank = 1 + sum(score > scores[name] for score in scores.values())
    print(rank, name)

"""The first line of the input is a positive integer n, followed by n lines, each with a name (letters only, no name
twice) and an integer score, separated by a space. Write a program that prints one line per name with the rank and the
name, separated by a space: highest score first, equal scores in alphabetical order of the names. The rank is 1 plus the
number of different higher scores (as in 1, 1, 2)."""
EXAMPLE = "3\nBo 5\nAl 5\nCy 2\n", "1 Al\n1 Bo\n2 Cy"

rows = [input().split() for _ in range(int(input()))]
scores = {name: int(score) for name, score in rows}
for name in sorted(scores, key=lambda name: (-scores[name], name)):
    # wrong: rank = 1 + sum(score > scores[name] for score in scores.values())
    rank = 1 + len({score for score in scores.values() if score > scores[name]})
    print(rank, name)

"""The first line of the input is a positive integer n, followed by n lines, each with a name (letters only, no name
twice) and an integer score, separated by a space. Write a program that prints one line per name with the rank and the
name, separated by a space: highest score first, equal scores in alphabetical order of the names. The rank is the number
of names with the same or a higher score (as in 2, 2, 3)."""
EXAMPLE = "3\nBo 5\nAl 5\nCy 2\n", "2 Al\n2 Bo\n3 Cy"

rows = [input().split() for _ in range(int(input()))]
scores = {name: int(score) for name, score in rows}
for name in sorted(scores, key=lambda name: (-scores[name], name)):
    # wrong: rank = 1 + sum(score > scores[name] for score in scores.values())
    rank = 1 + sum(score >= scores[name] for score in scores.values()) - 1
    print(rank, name)
