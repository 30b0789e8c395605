DRAW = lambda rng: tuple((*point(rng, 4), rng.randint(1, 5)) for _ in range(2))

"""A circle is a tuple (x, y, radius) of integers with a positive radius. Define `relate_circles(first, second)`: how
many points the two circle lines have in common: `"same"` if the circles are the same, `"crossing"` for two points,
`"touching"` for exactly one and `"apart"` for none (also if one lies within the other)."""
EXAMPLE = ((0, 0, 2), (3, 0, 1)), "touching"
EDGES = [((0, 0, 1), (0, 0, 1)), ((0, 0, 5), (1, 0, 1)), ((0, 0, 5), (4, 0, 1)), ((0, 0, 1), (5, 5, 1))]

def relate_circles(first, second):
    square = (first[0] - second[0]) ** 2 + (first[1] - second[1]) ** 2
    if first == second:
        return "same"
    # wrong: most = (first[2] + second[2]) ** 2
    least, most = (first[2] - second[2]) ** 2, (first[2] + second[2]) ** 2
    # wrong: if square == most:
    if square in (least, most):
        return "touching"
    # wrong: return "crossing" if square < most else "apart"
    return "crossing" if least < square < most else "apart"

"""A circle is a tuple (x, y, radius) of integers with a positive radius. Define `grid_points_in_circle(circle)`: the
number of points with integer coordinates inside the circle or exactly on it."""
EXAMPLE = ((0, 0, 1),), 5
EDGES = [((3, -2, 2),), ((1, 1, 5),)]
DRAW = lambda rng: ((*point(rng), rng.randint(1, 12)),)

def grid_points_in_circle(circle):
    radius = circle[2]
    span = range(-radius, radius + 1)
    # wrong: return sum(x * x + y * y < radius * radius for x in span for y in span)
    return sum(x * x + y * y <= radius * radius for x in span for y in span)

"""A circle is a tuple (x, y, radius) of integers with a positive radius. Define `points_in_circle(circle, points)`: the
list of those of the points, tuples (x, y) of integers, that lie inside the circle or exactly on it, in their order."""
EXAMPLE = ((0, 0, 2), [(0, 1), (2, 0), (2, 2)]), [(0, 1), (2, 0)]
EDGES = [((0, 0, 1), []), ((0, 0, 5), [(3, 4), (4, 4)])]
DRAW = lambda rng: ((*point(rng, 2), rng.randint(2, 5)), points(rng, 4, 7))

def points_in_circle(circle, points):
    x, y, radius = circle
    # wrong: return [p for p in points if abs(p[0] - x) <= radius >= abs(p[1] - y)]
    return [p for p in points if (p[0] - x) ** 2 + (p[1] - y) ** 2 <= radius * radius]
