DRAW = lambda rng: (polygon(rng)[0], (rng.randint(-1, 4), rng.randint(0, 5)))
EDGES = [
    ([(0, 0), (4, 0), (4, 3)], (4, 3)),
    ([(0, 0), (0, 2), (2, 2), (2, 0)], (1, 1)),
    ([(0, 0), (0, 2), (2, 2), (2, 0)], (3, 2)),
    ([(0, 0), (4, 0), (4, 4), (2, 1), (0, 4)], (2, 2)),
    ([(0, 0), (4, 0), (4, 4), (2, 1), (0, 4)], (1, 1)),
]

"""A simple polygon is given by the list of its at least three corners in order, clockwise or counterclockwise, tuples
(x, y) of integers. Define `is_inside_or_on_border(corners, point)`: `True` if the point, a tuple of two integers, lies
inside the polygon or on its border, else `False`."""
EXAMPLE = ([(0, 0), (3, 0), (0, 3)], (1, 1)), True

def is_inside_or_on_border(corners, point):
    x, y = point
    inside = False
    for (ax, ay), (bx, by) in zip(corners, corners[1:] + corners[:1]):
        cross = (bx - ax) * (y - ay) - (by - ay) * (x - ax)
        if cross == 0 and min(ax, bx) <= x <= max(ax, bx) and min(ay, by) <= y <= max(ay, by):
            # wrong: return False
            return True
        if (ay > y) != (by > y) and (cross > 0) == (by > ay):
            inside = not inside
    return inside

"""A simple polygon is given by the list of its at least three corners in order, clockwise or counterclockwise, tuples
(x, y) of integers. Define `is_strictly_inside(corners, point)`: `True` if the point, a tuple of two integers, lies
inside the polygon and not on its border, else `False`."""
EXAMPLE = ([(0, 0), (3, 0), (0, 3)], (1, 2)), False

def is_strictly_inside(corners, point):
    x, y = point
    inside = False
    for (ax, ay), (bx, by) in zip(corners, corners[1:] + corners[:1]):
        cross = (bx - ax) * (y - ay) - (by - ay) * (x - ax)
        if cross == 0 and min(ax, bx) <= x <= max(ax, bx) and min(ay, by) <= y <= max(ay, by):
            # wrong: return True
            return False
        if (ay > y) != (by > y) and (cross > 0) == (by > ay):
            inside = not inside
    return inside

"""A simple polygon is given by the list of its at least three corners in order, clockwise or counterclockwise, tuples
(x, y) of integers. Define `locate_point(corners, point)`: `"inside"`, `"border"` or `"outside"`, as the point, a tuple
of two integers, lies strictly inside the polygon, on its border or elsewhere."""
EXAMPLE = ([(0, 0), (3, 0), (0, 3)], (1, 2)), "border"

def locate_point(corners, point):
    x, y = point
    inside = False
    for (ax, ay), (bx, by) in zip(corners, corners[1:] + corners[:1]):
        cross = (bx - ax) * (y - ay) - (by - ay) * (x - ax)
        if cross == 0 and min(ax, bx) <= x <= max(ax, bx) and min(ay, by) <= y <= max(ay, by):
            # wrong: return "inside"
            return "border"
        if (ay > y) != (by > y) and (cross > 0) == (by > ay):
            inside = not inside
    return "inside" if inside else "outside"
