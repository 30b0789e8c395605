DRAW = lambda rng: next(
    found
    for found in iter(lambda: polygon(rng), None)
    if all(
        (b[0] - a[0]) * (c[1] - b[1]) != (b[1] - a[1]) * (c[0] - b[0])
        for a, b, c in zip(found[0], found[0][1:] + found[0][:1], found[0][2:] + found[0][:2], strict=True)
    )
)
EDGES = [([(0, 0), (4, 0), (4, 3)],), ([(0, 0), (0, 2), (2, 2), (2, 0)],), ([(0, 0), (4, 0), (4, 4), (2, 1), (0, 4)],)]

"""A simple polygon is given by the list of its at least three corners in order, clockwise or counterclockwise, tuples
(x, y) of integers. No three successive corners lie on one line. Define `is_convex(corners)`: `True` if it is convex,
that is all inner angles are less than 180 degrees, else `False`."""
EXAMPLE = ([(0, 0), (4, 0), (4, 4), (2, 1), (0, 4)],), False

def is_convex(corners):
    turns = []
    for i, b in enumerate(corners):
        a, c = corners[i - 1], corners[(i + 1) % len(corners)]
        turns.append((b[0] - a[0]) * (c[1] - b[1]) - (b[1] - a[1]) * (c[0] - b[0]))
    # wrong: return min(turns) > 0
    return min(turns) > 0 or max(turns) < 0

"""A simple polygon is given by the list of its at least three corners in order, clockwise or counterclockwise, tuples
(x, y) of integers. No three successive corners lie on one line. Define `count_reflex_corners(corners)`: the number of
its corners whose inner angle is greater than 180 degrees."""
EXAMPLE = ([(0, 0), (4, 0), (4, 4), (2, 1), (0, 4)],), 1

def count_reflex_corners(corners):
    turns = []
    for i, b in enumerate(corners):
        a, c = corners[i - 1], corners[(i + 1) % len(corners)]
        turns.append((b[0] - a[0]) * (c[1] - b[1]) - (b[1] - a[1]) * (c[0] - b[0]))
    # wrong (2 lines): return sum(turn < 0 for turn in turns)
    doubled_area = sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(corners, corners[1:] + corners[:1]))
    return sum((turn < 0) != (doubled_area < 0) for turn in turns)

"""A simple polygon is given by the list of its at least three corners in order, clockwise or counterclockwise, tuples
(x, y) of integers. No three successive corners lie on one line. Define `count_right_corners(corners)`: the number of
its corners at which the two sides are at a right angle to each other."""
EXAMPLE = ([(0, 0), (3, 0), (0, 4)],), 1

def count_right_corners(corners):
    turns = []
    for i, b in enumerate(corners):
        a, c = corners[i - 1], corners[(i + 1) % len(corners)]
        turns.append((b[0] - a[0]) * (c[1] - b[1]) - (b[1] - a[1]) * (c[0] - b[0]))
    # wrong (6 lines): return sum(a[0] == b[0] or a[1] == b[1] for a, b in zip(corners, corners[1:]))
    corner_dots = [
        (corners[i - 1][0] - b[0]) * (corners[(i + 1) % len(corners)][0] - b[0])
        + (corners[i - 1][1] - b[1]) * (corners[(i + 1) % len(corners)][1] - b[1])
        for i, b in enumerate(corners)
    ]
    return corner_dots.count(0)
