DRAW = lambda rng: (points(rng, 3, 7, 6),)
EDGES = [([(2, 3)],), ([(0, 0), (0, 4)],), ([(-3, -1), (-1, -5)],)]

"""`points` is a non-empty list of tuples (x, y) of integers. Define `bounding_box(points)`: the tuple (least x, least
y, greatest x, greatest y)."""
EXAMPLE = ([(1, 5), (3, 2)],), (1, 2, 3, 5)

def bounding_box(points):
    xs, ys = zip(*points)
    # wrong: return (*min(points), *max(points))
    return (min(xs), min(ys), max(xs), max(ys))

"""`points` is a non-empty list of tuples (x, y) of integers. Define `bounding_area(points)`: the area of the smallest
rectangle with sides parallel to the axes that holds all the points (0 if it is only a segment or a point)."""
EXAMPLE = ([(1, 5), (3, 2)],), 6

def bounding_area(points):
    xs, ys = zip(*points)
    # wrong: return (max(xs) - min(xs) + 1) * (max(ys) - min(ys) + 1)
    return (max(xs) - min(xs)) * (max(ys) - min(ys))

"""`points` is a non-empty list of tuples (x, y) of integers. Define `bounding_square_side(points)`: the least side
length of a square with sides parallel to the axes that holds all the points."""
EXAMPLE = ([(1, 5), (3, 2)],), 3

def bounding_square_side(points):
    xs, ys = zip(*points)
    # wrong: return max(xs) - min(xs)
    return max(max(xs) - min(xs), max(ys) - min(ys))
