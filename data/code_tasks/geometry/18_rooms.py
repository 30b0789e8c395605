DRAW = lambda rng: (lambda rows: lines(len(rows), *rows))(
    [(a, b, a + rng.choice([-3, -1, 2, 4]), b + rng.choice([-2, -1, 1, 5])) for a, b in points(rng, 2, 5)]
)
EDGES = ["1\n0 0 1 1\n", "1\n4 5 1 7\n"]

"""The input has a positive integer n on its first line and n lines with four integers x1 y1 x2 y2, separated by spaces:
two opposite corners, in any order, of a rectangle with sides parallel to the axes; x1 and x2 differ, and so do y1 and
y2. Write a program that prints the sum of their areas (parts that overlap count as often as they are covered)."""
EXAMPLE = "2\n0 0 2 3\n1 1 0 0\n", "7"

areas = []
for _ in range(int(input())):
    a, b, c, d = map(int, input().split())
    # wrong: areas.append((c - a) * (d - b))
    areas.append(abs(a - c) * abs(b - d))
print(sum(areas))

"""The input has a positive integer n on its first line and n lines with four integers x1 y1 x2 y2, separated by spaces:
two opposite corners, in any order, of a rectangle with sides parallel to the axes; x1 and x2 differ, and so do y1 and
y2. Write a program that prints the greatest of their perimeters."""
EXAMPLE = "2\n0 0 2 3\n1 1 0 0\n", "10"

areas = []
for _ in range(int(input())):
    a, b, c, d = map(int, input().split())
    # wrong: areas.append(2 * (c - a + d - b))
    areas.append(2 * (abs(a - c) + abs(b - d)))
print(max(areas))

"""The input has a positive integer n on its first line and n lines with four integers x1 y1 x2 y2, separated by spaces:
two opposite corners, in any order, of a rectangle with sides parallel to the axes; x1 and x2 differ, and so do y1 and
y2. Write a program that prints how many of them are squares."""
EXAMPLE = "2\n0 0 2 3\n1 1 0 0\n", "1"
EDGES = ["1\n0 2 2 0\n"]

areas = []
for _ in range(int(input())):
    a, b, c, d = map(int, input().split())
    # wrong: areas.append(c - a == d - b)
    areas.append(abs(a - c) == abs(b - d))
print(sum(areas))
