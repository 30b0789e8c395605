DRAW = polygon
EDGES = [([(0, 0), (4, 0), (4, 3)],), ([(0, 0), (0, 2), (2, 2), (2, 0)],), ([(0, 0), (4, 0), (4, 4), (2, 1), (0, 4)],)]

"""A simple polygon is given by the list of its at least three corners in order, clockwise or counterclockwise, tuples
(x, y) of integers. Define `doubled_area(corners)`: twice its area, as a positive integer."""
EXAMPLE = ([(0, 0), (3, 0), (0, 3)],), 9

def doubled_area(corners):
    pairs = list(zip(corners, corners[1:] + corners[:1]))
    doubled = sum(a[0] * b[1] - b[0] * a[1] for a, b in pairs)
    # wrong: return doubled
    return abs(doubled)

"""A simple polygon is given by the list of its at least three corners in order, clockwise or counterclockwise, tuples
(x, y) of integers. Define `is_counterclockwise(corners)`: `True` if the corners are given counterclockwise (x grows to
the right, y upwards), else `False`."""
EXAMPLE = ([(0, 0), (3, 0), (0, 3)],), True
EDGES = [([(4, 0), (0, 0), (0, 4)],), ([(4, 4), (0, 0), (4, 0)],)]

def is_counterclockwise(corners):
    # wrong (3 lines): return corners[1] > corners[-1]
    pairs = list(zip(corners, corners[1:] + corners[:1]))
    doubled = sum(a[0] * b[1] - b[0] * a[1] for a, b in pairs)
    return doubled > 0

"""A simple polygon is given by the list of its at least three corners in order, clockwise or counterclockwise, tuples
(x, y) of integers. Define `border_points(corners)`: the number of points with integer coordinates on its border,
corners included."""
EXAMPLE = ([(0, 0), (3, 0), (0, 3)],), 9

# wrong (3 lines):
from math import gcd


def border_points(corners):
    # wrong (3 lines): return len(corners)
    pairs = list(zip(corners, corners[1:] + corners[:1]))
    border = sum(gcd(a[0] - b[0], a[1] - b[1]) for a, b in pairs)
    return border

"""A simple polygon is given by the list of its at least three corners in order, clockwise or counterclockwise, tuples
(x, y) of integers. Define `inner_points(corners)`: the number of points with integer coordinates strictly inside it."""
EXAMPLE = ([(0, 0), (3, 0), (0, 3)],), 1

from math import gcd


def inner_points(corners):
    pairs = list(zip(corners, corners[1:] + corners[:1]))
    doubled = sum(a[0] * b[1] - b[0] * a[1] for a, b in pairs)
    border = sum(gcd(a[0] - b[0], a[1] - b[1]) for a, b in pairs)
    # wrong: return (abs(doubled) - border) // 2
    return (abs(doubled) - border + 2) // 2
