DRAW = lambda rng: (points(rng, 3, 6),)
EDGES = [([(0, 0), (1, 1)],), ([(0, 0), (0, 2), (2, 2), (2, 0)],), ([(5, 0), (0, 0), (0, 0), (0, 7)],)]

"""`points` is a list of at least two tuples (x, y) of integers. Define `path_length(points)`: the length of the path
that goes straight from each point to the next, from the first to the last, as a `float` rounded with `round(...,
2)`."""
EXAMPLE = ([(0, 0), (3, 4), (3, 5)],), 6.0

from math import dist


def path_length(points):
    # wrong: return round(sum(dist(a, b) for a, b in zip(points, points[1:-1])), 2)
    return round(sum(dist(a, b) for a, b in zip(points, points[1:])), 2)

"""`points` is the list of the corners of a polygon in order, at least two tuples (x, y) of integers (with two, it is
walked there and back). Define `perimeter(points)`: the length of its border, the side from the last corner back to the
first included, as a `float` rounded with `round(..., 2)`."""
EXAMPLE = ([(0, 0), (3, 4), (3, 0)],), 12.0

from math import dist


def perimeter(points):
    # wrong: return round(sum(dist(a, b) for a, b in zip(points, points[1:])), 2)
    return round(sum(dist(a, b) for a, b in zip(points, points[1:] + points[:1])), 2)

"""`points` is a list of at least two tuples (x, y) of integers. Define `length_of_star(points)`: the sum of the
straight-line distances from the first point to each of the others, as a `float` rounded with `round(..., 2)`."""
EXAMPLE = ([(0, 0), (3, 4), (3, 0)],), 8.0

from math import dist


def length_of_star(points):
    # wrong: return round(sum(dist(a, b) for a, b in zip(points[1:], points)), 2)
    return round(sum(dist(a, b) for a, b in zip(points[1:], [points[0]] * len(points))), 2)
