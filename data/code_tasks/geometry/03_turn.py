DRAW = lambda rng: (point(rng, 3), point(rng, 3), point(rng, 3))
EDGES = [((0, 0), (0, 0), (1, 1)), ((0, 0), (2, 2), (1, 0)), ((3, 3), (1, 1), (0, 2))]

"""Points are tuples (x, y) of integers; x grows to the right and y upwards. Define `turn_direction(a, b, c)`: `"left"`,
`"right"` or `"straight"`, as `c` lies to the left, to the right or neither for someone who looks from `a` towards `b`;
`"straight"` also if `a` and `b` are the same."""
EXAMPLE = ((0, 0), (1, 0), (1, 1)), "left"

def turn_direction(a, b, c):
    cross = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
    # wrong: return "right" if cross > 0 else "left" if cross < 0 else "straight"
    return "left" if cross > 0 else "right" if cross < 0 else "straight"

"""Points are tuples (x, y) of integers; x grows to the right and y upwards. Define `are_collinear(a, b, c)`: `True` if
all three points lie on one straight line (also if some are the same), else `False`."""
EXAMPLE = ((0, 0), (1, 1), (3, 3)), True
EDGES = [((0, 0), (1, 2), (2, 4)), ((2, 1), (2, 5), (2, 0))]

def are_collinear(a, b, c):
    # wrong (2 lines): return a[0] == b[0] == c[0] or a[1] == b[1] == c[1]
    cross = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
    return cross == 0

"""Points are tuples (x, y) of integers; x grows to the right and y upwards. Define `doubled_triangle_area(a, b, c)`:
twice the area of the triangle with these corners, a non-negative integer (0 if they lie on one line)."""
EXAMPLE = ((0, 0), (2, 0), (1, 3)), 6

def doubled_triangle_area(a, b, c):
    cross = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
    # wrong: return cross
    return abs(cross)

"""Points are tuples (x, y) of integers; x grows to the right and y upwards. Define `lies_on_segment(a, b, c)`: `True`
if `c` lies on the straight segment from `a` to `b`, both ends included, else `False`; a and b may be the same point."""
EXAMPLE = ((0, 0), (2, 2), (1, 1)), True
EDGES = [((0, 0), (2, 2), (3, 3)), ((0, 0), (0, 2), (0, 2)), ((1, 1), (1, 1), (2, 2))]

def lies_on_segment(a, b, c):
    cross = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
    # wrong: return cross == 0
    return cross == 0 and min(a, b) <= c <= max(a, b)
