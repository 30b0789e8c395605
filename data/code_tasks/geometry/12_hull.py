DRAW = lambda rng: (list(dict.fromkeys([(0, 0), (4, 0), (0, 4), *points(rng, 2, 6, 4)])),)
EDGES = [
    ([(0, 0), (4, 0), (0, 4)],),
    ([(0, 0), (1, 0), (2, 0), (2, 2), (0, 2), (1, 1)],),
    ([(3, 3), (0, 0), (2, 2), (1, 1), (3, 0)],),
]

"""The convex hull of points is the smallest convex polygon that holds them all; its corners are points at which it
really bends (points in the middle of a side do not count). `points` is a list of at least three different tuples (x, y)
of integers, not all on one line. Define `count_hull_corners(points)`: the number of corners of their convex hull."""
EXAMPLE = ([(0, 0), (2, 0), (0, 2), (1, 1)],), 3

def count_hull_corners(points):
    def chain(ordered):
        result = []
        for x, y in ordered:
            while len(result) > 1:
                (ax, ay), (bx, by) = result[-2:]
                # wrong: if (bx - ax) * (y - ay) - (by - ay) * (x - ax) >= 0:
                if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0:
                    break
                result.pop()
            result.append((x, y))
        return result[:-1]

    corners = chain(sorted(points)) + chain(sorted(points, reverse=True))
    return len(corners)

"""The convex hull of points is the smallest convex polygon that holds them all; its corners are points at which it
really bends (points in the middle of a side do not count). `points` is a list of at least three different tuples (x, y)
of integers, not all on one line. Define `hull_corners(points)`: the list of the corners of their convex hull
counterclockwise (x grows to the right, y upwards), starting with the smallest tuple."""
EXAMPLE = ([(0, 0), (2, 0), (0, 2), (1, 1)],), [(0, 0), (2, 0), (0, 2)]

def hull_corners(points):
    def chain(ordered):
        result = []
        for x, y in ordered:
            while len(result) > 1:
                (ax, ay), (bx, by) = result[-2:]
                # wrong: if (bx - ax) * (y - ay) - (by - ay) * (x - ax) >= 0:
                if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0:
                    break
                result.pop()
            result.append((x, y))
        return result[:-1]

    corners = chain(sorted(points)) + chain(sorted(points, reverse=True))
    return corners

"""The convex hull of points is the smallest convex polygon that holds them all; its corners are points at which it
really bends (points in the middle of a side do not count). `points` is a list of at least three different tuples (x, y)
of integers, not all on one line. Define `points_off_hull_corners(points)`: the list of those points that are not
corners of their convex hull, in their order in `points`."""
EXAMPLE = ([(0, 0), (2, 0), (0, 2), (1, 1)],), [(1, 1)]

def points_off_hull_corners(points):
    def chain(ordered):
        result = []
        for x, y in ordered:
            while len(result) > 1:
                (ax, ay), (bx, by) = result[-2:]
                # wrong: if (bx - ax) * (y - ay) - (by - ay) * (x - ax) >= 0:
                if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0:
                    break
                result.pop()
            result.append((x, y))
        return result[:-1]

    corners = chain(sorted(points)) + chain(sorted(points, reverse=True))
    return [p for p in points if p not in corners]
