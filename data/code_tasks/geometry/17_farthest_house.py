DRAW = lambda rng: (lambda names: lines(point(rng, 3), len(names), *((name, *point(rng, 3)) for name in names)))(
    rng.sample(["Ash", "Birch", "Cedar", "Elm", "Fir"], rng.randint(2, 5))
)
EDGES = ["5 5\n1\nElm 5 5\n", "0 0\n2\nFir 0 1\nAsh 1 0\n"]

"""The first line of the input has two integers, the position x y of a shop, the second a positive integer n; n lines
follow, each with a name (letters only, no name twice) and two integers x y, the position of a house. All parts of a
line are separated by single spaces. Distance is measured along the axes, as |dx| + |dy|. Write a program that prints
the name of the nearest house, the alphabetically first if several tie, and its distance, separated by a space."""
EXAMPLE = "0 0\n3\nElm 1 2\nAsh 3 0\nFir 1 0\n", "Fir 1"

x, y = map(int, input().split())
houses = []
for _ in range(int(input())):
    name, a, b = input().split()
    dx, dy = abs(int(a) - x), abs(int(b) - y)
    houses.append((dx + dy, name))
# wrong: distance, name = max(houses)
distance, name = min(houses)
print(name, distance)

"""The first line of the input has two integers, the position x y of a shop, the second a positive integer n; n lines
follow, each with a name (letters only, no name twice) and two integers x y, the position of a house. All parts of a
line are separated by single spaces. Distance is measured in a straight line. Write a program that prints the name of
the farthest house, the alphabetically first if several tie."""
EXAMPLE = "0 0\n3\nElm 1 2\nAsh 3 0\nFir 1 0\n", "Ash"

x, y = map(int, input().split())
houses = []
for _ in range(int(input())):
    name, a, b = input().split()
    dx, dy = abs(int(a) - x), abs(int(b) - y)
    houses.append((-dx * dx - dy * dy, name))
# wrong: print(max(houses)[1])
print(min(houses)[1])

"""The first line of the input has two integers, the position x y of a shop, the second a positive integer n; n lines
follow, each with a name (letters only, no name twice) and two integers x y, the position of a house. All parts of a
line are separated by single spaces. Distance is measured along the axes, as |dx| + |dy|. Write a program that prints
the names, one a line, from the nearest to the farthest, those at equal distance in alphabetical order."""
EXAMPLE = "0 0\n3\nElm 1 2\nAsh 3 0\nFir 1 0\n", "Fir\nAsh\nElm"

x, y = map(int, input().split())
houses = []
for _ in range(int(input())):
    name, a, b = input().split()
    dx, dy = abs(int(a) - x), abs(int(b) - y)
    houses.append((dx + dy, name))
# wrong: for _, name in sorted(houses, key=lambda house: house[0]):
for _, name in sorted(houses):
    print(name)
