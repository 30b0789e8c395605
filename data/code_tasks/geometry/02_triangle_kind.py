DRAW = triangle
EDGES = [((1, 1), (3, 1), (1, 3)), ((0, 0), (1, 0), (0, 1))]

"""A triangle is given by its corners, three different tuples (x, y) of integers that do not lie on one line. Define
`classify_by_angle(a, b, c)`: `"acute"`, `"right"` or `"obtuse"`, as its greatest angle is less than, equal to or
greater than 90 degrees."""
EXAMPLE = ((0, 0), (3, 0), (0, 4)), "right"
EDGES = [((0, 0), (4, 0), (2, 5)), ((0, 0), (9, 0), (4, 1))]

def classify_by_angle(a, b, c):
    sides = sorted((p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 for p, q in ((a, b), (b, c), (c, a)))
    # wrong: return "right" if sides[0] + sides[1] == sides[2] else "acute" if sides[0] + sides[1] < sides[2] else "obtuse"
    return "right" if sides[0] + sides[1] == sides[2] else "acute" if sides[0] + sides[1] > sides[2] else "obtuse"

"""A triangle is given by its corners, three different tuples (x, y) of integers that do not lie on one line. Define
`is_isosceles(a, b, c)`: `True` if at least two of its sides have exactly the same length, else `False`."""
EXAMPLE = ((0, 0), (4, 0), (2, 5)), True
EDGES = [((0, 0), (2, 0), (1, 9)), ((0, 0), (5, 0), (1, 2))]

def is_isosceles(a, b, c):
    sides = sorted((p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 for p, q in ((a, b), (b, c), (c, a)))
    # wrong: return sides[0] == sides[1]
    return sides[0] == sides[1] or sides[1] == sides[2]

"""A triangle is given by its corners, three different tuples (x, y) of integers that do not lie on one line. Define
`longest_side_squared(a, b, c)`: the square of the length of its longest side, as an integer."""
EXAMPLE = ((0, 0), (3, 0), (0, 4)), 25

def longest_side_squared(a, b, c):
    # wrong (2 lines): return (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2
    sides = sorted((p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 for p, q in ((a, b), (b, c), (c, a)))
    return sides[2]
