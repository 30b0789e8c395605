DRAW = lambda rng: (points(rng, 3, 7, 5),)
EDGES = [([],), ([(1, 1)],), ([(0, 0), (2, 0)],), ([(0, 0), (1, 0), (0, 1), (1, 1)],)]

"""`points` is a list of different tuples (x, y) of integers. Define `closest_squared_distance(points)`: the least
square of the distance between two of the points, `None` if there are fewer than two."""
EXAMPLE = ([(0, 0), (3, 4), (3, 3)],), 1

from itertools import combinations


def closest_squared_distance(points):
    pairs = [((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2, min(a, b), max(a, b)) for a, b in combinations(points, 2)]
    # wrong: return pairs[0][0] if pairs else None
    return min(pairs)[0] if pairs else None

"""`points` is a list of different tuples (x, y) of integers. Define `closest_pair(points)`: the tuple (p, q) of the two
points with the least distance, p < q; if several pairs tie, the one with the smallest p, then the smallest q (points
are compared as tuples); `None` if there are fewer than two points."""
EXAMPLE = ([(0, 0), (3, 4), (3, 3)],), ((3, 3), (3, 4))
EDGES = [([(5, 5), (5, 6), (0, 0), (0, 1)],), ([(2, 0), (1, 0), (0, 0)],)]

from itertools import combinations


def closest_pair(points):
    pairs = [((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2, min(a, b), max(a, b)) for a, b in combinations(points, 2)]
    # wrong: return min(pairs, key=lambda pair: pair[0])[1:] if pairs else None
    return min(pairs)[1:] if pairs else None

"""`points` is a list of different tuples (x, y) of integers. Define `greatest_squared_distance(points)`: the greatest
square of the distance between two of the points, 0 if there are fewer than two."""
EXAMPLE = ([(0, 0), (3, 4), (3, 3)],), 25

# wrong (3 lines):
from itertools import combinations


def greatest_squared_distance(points):
    # wrong (2 lines): return sum((max(axis) - min(axis)) ** 2 for axis in zip(*points))
    pairs = [((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2, min(a, b), max(a, b)) for a, b in combinations(points, 2)]
    return max(pairs)[0] if pairs else 0

"""`points` is a list of different tuples (x, y) of integers. Define `count_distances(points)`: the number of different
distances between two of the points, 0 if there are fewer than two."""
EXAMPLE = ([(0, 0), (1, 0), (0, 1)],), 2

from itertools import combinations


def count_distances(points):
    pairs = [((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2, min(a, b), max(a, b)) for a, b in combinations(points, 2)]
    # wrong: return len(pairs)
    return len({square for square, *_ in pairs})
