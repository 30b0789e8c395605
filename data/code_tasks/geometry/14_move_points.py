DRAW = lambda rng: (points(rng, 2, 5),)
EDGES = [([],), ([(0, 0)],), ([(3, 3), (-1, 4)],)]

"""`points` is a list of tuples (x, y) of integers; x grows to the right and y upwards. Define `turn_left(points)`: the
list of the points, in the same order, turned by 90 degrees counterclockwise about (0, 0); the empty list gives `[]`."""
EXAMPLE = ([(1, 2)],), [(-2, 1)]

def turn_left(points):
    # wrong: return [(y, -x) for x, y in points]
    return [(-y, x) for x, y in points]

"""`points` is a list of tuples (x, y) of integers; x grows to the right and y upwards. Define
`mirror_at_diagonal(points)`: the list of the points, in the same order, mirrored at the line on which x and y are
equal; the empty list gives `[]`."""
EXAMPLE = ([(1, 2)],), [(2, 1)]

def mirror_at_diagonal(points):
    # wrong: return [(-y, -x) for x, y in points]
    return [(y, x) for x, y in points]

"""`points` is a list of tuples (x, y) of integers; x grows to the right and y upwards. Define
`mirror_at_vertical(points)`: the list of the points, in the same order, mirrored at the vertical line x = 3; the empty
list gives `[]`."""
EXAMPLE = ([(1, 2)],), [(5, 2)]

def mirror_at_vertical(points):
    # wrong: return [(3 - x, y) for x, y in points]
    return [(6 - x, y) for x, y in points]

"""`points` is a list of tuples (x, y) of integers; x grows to the right and y upwards. Define
`turn_half_about_point(points)`: the list of the points, in the same order, turned by 180 degrees about the point (1,
1); the empty list gives `[]`."""
EXAMPLE = ([(1, 2)],), [(1, 0)]

def turn_half_about_point(points):
    # wrong: return [(1 - x, 1 - y) for x, y in points]
    return [(2 - x, 2 - y) for x, y in points]
