DRAW = lambda rng: next(
    pair
    for pair in iter(lambda: tuple((point(rng, 2), point(rng, 2)) for _ in range(2)), None)
    if all(p != q for p, q in pair)
)
EDGES = [
    (((0, 0), (2, 0)), ((1, 0), (1, 3))),
    (((0, 0), (2, 0)), ((0, 1), (2, 1))),
    (((0, 0), (3, 1)), ((3, 1), (0, 5))),
]

"""A segment is a tuple (p, q) of two different points, its ends, which are tuples (x, y) of integers. Define
`segments_cross(first, second)`: `True` if the segments have exactly one point in common and it is not an end of either,
else `False`."""
EXAMPLE = (((0, 0), (2, 2)), ((0, 2), (2, 0))), True

def segments_cross(first, second):
    def side(a, b, c):
        cross = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
        return (cross > 0) - (cross < 0)

    a, b, c, d = *first, *second
    sides = side(a, b, c), side(a, b, d), side(c, d, a), side(c, d, b)
    # wrong: return sides[0] * sides[1] <= 0 and sides[2] * sides[3] <= 0
    return sides[0] * sides[1] < 0 and sides[2] * sides[3] < 0

"""A segment is a tuple (p, q) of two different points, its ends, which are tuples (x, y) of integers. Define
`segments_meet(first, second)`: `True` if the segments have at least one point in common, ends included, else
`False`."""
EXAMPLE = (((0, 0), (2, 2)), ((1, 1), (5, 0))), True
EDGES = [(((0, 0), (2, 0)), ((1, 0), (3, 0))), (((0, 0), (1, 0)), ((2, 0), (3, 0)))]

def segments_meet(first, second):
    def side(a, b, c):
        cross = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
        return (cross > 0) - (cross < 0)

    a, b, c, d = *first, *second
    sides = side(a, b, c), side(a, b, d), side(c, d, a), side(c, d, b)
    # wrong (3 lines): return sides[0] != sides[1] and sides[2] != sides[3]
    return sides[0] * sides[1] <= 0 and sides[2] * sides[3] <= 0 and all(
        max(min(a[i], b[i]), min(c[i], d[i])) <= min(max(a[i], b[i]), max(c[i], d[i])) for i in (0, 1)
    )

"""A segment is a tuple (p, q) of two different points, its ends, which are tuples (x, y) of integers. Define
`relate_directions(first, second)`: `"parallel"`, `"perpendicular"` or `"neither"`, as the straight lines through the
segments have the same direction (also if they are the same line), are at a right angle, or neither."""
EXAMPLE = (((0, 0), (2, 2)), ((1, 0), (2, 1))), "parallel"

def relate_directions(first, second):
    def side(a, b, c):
        cross = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
        return (cross > 0) - (cross < 0)

    a, b, c, d = *first, *second
    # wrong: sides = side(a, b, c), side(a, b, d), side(c, d, a), side(c, d, b)
    # wrong: dots = (b[0] - a[0]) * (d[0] - c[0]) + (b[1] - a[1]) * (d[1] - c[1])
    dots = (b[0] - a[0]) * (d[0] - c[0]) + (b[1] - a[1]) * (d[1] - c[1])
    # wrong (2 lines): return "perpendicular" if dots == 0 else "parallel" if sides[0] == sides[1] else "neither"
    parallel = (b[0] - a[0]) * (d[1] - c[1]) == (b[1] - a[1]) * (d[0] - c[0])
    return "perpendicular" if dots == 0 else "parallel" if parallel else "neither"
