"""Tasks about points, lines, rectangles, circles and polygons, with integers or exactly stated rounding."""

from random import Random

from .common import Family, lines, points, variant

TRIANGLE = "A triangle is given by its corners, three different tuples (x, y) of integers that do not lie on one line. "
POLYGON = ("A simple polygon is given by the list of its at least three corners in order, clockwise or "
           "counterclockwise, tuples "
           "(x, y) of integers. ")  # fmt: skip
RECTANGLE = "A rectangle is a tuple (left, bottom, right, top) of integers with left < right and bottom < top. "
POLYGONS = (
    ([(0, 0), (4, 0), (4, 3)],),
    ([(0, 0), (0, 2), (2, 2), (2, 0)],),
    ([(0, 0), (4, 0), (4, 4), (2, 1), (0, 4)],),
)


def point(rng: Random, size: int = 6) -> tuple[int, int]:
    """A point with integer coordinates."""
    return rng.randint(-size, size), rng.randint(-size, size)


def rectangle(rng: Random) -> tuple[int, int, int, int]:
    """Left, bottom, right, top."""
    left, bottom = point(rng, 4)
    return left, bottom, left + rng.randint(1, 6), bottom + rng.randint(1, 6)


def triangle(rng: Random) -> tuple:
    """Three points that do not lie on one line."""
    while True:
        (a, b), (c, d), (e, f) = found = point(rng), point(rng), point(rng)
        if (c - a) * (f - b) != (e - a) * (d - b):
            return found


def polygon(rng: Random) -> tuple:
    """A simple polygon: heights over a base line, in either direction."""
    width = rng.randint(2, 4)
    tops = [(x, rng.randint(1, 6)) for x in range(width, -1, -1)]
    corners = [(0, 0), (width, 0), *tops]
    return (corners[:: rng.choice([1, -1])],)


FAMILIES = [
    Family(
        "distance",
        "Points are tuples (x, y) of integers. Define `$f(first, second)`: $what.",
        """
$head
def $f(first, second):
    dx, dy = second[0] - first[0], second[1] - first[1]
    return $result
""",
        {"$result": "$bad"},
        lambda rng: (point(rng), point(rng)),
        [
            variant(
                ((0, 0), (3, -4)),
                7,
                f="taxi_distance",
                head="",
                what="the least number of steps of length 1 to the left, right, up or "
                "down that lead from one point to the other",
                result="abs(dx) + abs(dy)",
                bad="abs(dx + dy)",
            ),
            variant(
                ((0, 0), (3, -4)),
                4,
                f="king_distance",
                head="",
                what="the least number of moves of a chess king (one step in any of the "
                "eight directions) from one point to the other",
                result="max(abs(dx), abs(dy))",
                bad="max(dx, dy)",
            ),
            variant(
                ((0, 0), (3, -4)),
                25,
                f="squared_distance",
                head="",
                what="the square of their straight-line distance, as an integer",
                result="dx * dx + dy * dy",
                bad="(dx + dy) ** 2",
            ),
            variant(
                ((0, 0), (3, -4)),
                0,
                f="points_between",
                what="the number of points with integer coordinates on the straight "
                "segment between them, both ends excluded; 0 if the two points are the same",
                head="from math import gcd\n\n",
                result="max(gcd(dx, dy) - 1, 0)",
                bad="max(max(abs(dx), abs(dy)) - 1, 0)",
                edges=(((0, 0), (4, 6)), ((1, 1), (-3, 1))),
            ),
        ],
        edges=(((2, 3), (2, 3)), ((0, 0), (5, 0)), ((-1, -1), (-3, -3)), ((1, 2), (0, 4))),
    ),
    Family(
        "triangle_kind",
        TRIANGLE + "Define `$f(a, b, c)`: $what.",
        """
def $f(a, b, c):
    sides = sorted((p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 for p, q in ((a, b), (b, c), (c, a)))
    return $result
""",
        {"$result": "$bad"},
        triangle,
        [
            variant(
                ((0, 0), (3, 0), (0, 4)),
                "right",
                f="classify_by_angle",
                bad='"right" if sides[0] + sides[1] == sides[2] else '
                '"acute" if sides[0] + sides[1] < sides[2] else "obtuse"',
                what='`"acute"`, `"right"` or `"obtuse"`, as its greatest angle is less than, equal to or greater '
                "than 90 "
                "degrees",
                result='"right" if sides[0] + sides[1] == sides[2] else "acute" if sides[0] + sides[1] > '
                'sides[2] else "obtuse"',
                edges=(((0, 0), (4, 0), (2, 5)), ((0, 0), (9, 0), (4, 1))),
            ),
            variant(
                ((0, 0), (4, 0), (2, 5)),
                True,
                f="is_isosceles",
                what="`True` if at least two of its sides have exactly the same length, else `False`",
                result="sides[0] == sides[1] or sides[1] == sides[2]",
                bad="sides[0] == sides[1]",
                edges=(((0, 0), (2, 0), (1, 9)), ((0, 0), (5, 0), (1, 2))),
            ),
            variant(
                ((0, 0), (3, 0), (0, 4)),
                25,
                f="longest_side_squared",
                what="the square of the length of its longest side, as an integer",
                result="sides[2]",
                bad="(a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2",
            ),
        ],
        edges=(((1, 1), (3, 1), (1, 3)), ((0, 0), (1, 0), (0, 1))),
    ),
    Family(
        "turn",
        "Points are tuples (x, y) of integers; x grows to the right and y upwards. Define `$f(a, b, c)`: $what.",
        """
def $f(a, b, c):
    cross = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
    return $result
""",
        {"$result": "$bad"},
        lambda rng: (point(rng, 3), point(rng, 3), point(rng, 3)),
        [
            variant(
                ((0, 0), (1, 0), (1, 1)),
                "left",
                f="turn_direction",
                what='`"left"`, `"right"` or `"straight"`, as `c` lies to '
                'the left, to the right or neither for someone who looks from `a` towards `b`; `"straight"` also '
                "if `a` and "
                "`b` are the same",
                result='"left" if cross > 0 else "right" if cross < 0 else "straight"',
                bad='"right" if cross > 0 else "left" if cross < 0 else "straight"',
            ),
            variant(
                ((0, 0), (1, 1), (3, 3)),
                True,
                f="are_collinear",
                what="`True` if all three points lie on one straight line (also if some are the same), else `False`",
                result="cross == 0",
                bad="a[0] == b[0] == c[0] or a[1] == b[1] == c[1]",
                edges=(((0, 0), (1, 2), (2, 4)), ((2, 1), (2, 5), (2, 0))),
            ),
            variant(
                ((0, 0), (2, 0), (1, 3)),
                6,
                f="doubled_triangle_area",
                what="twice the area of the triangle with these corners, "
                "a non-negative integer (0 if they lie on one line)",
                result="abs(cross)",
                bad="cross",
            ),
            variant(
                ((0, 0), (2, 2), (1, 1)),
                True,
                f="lies_on_segment",
                what="`True` if `c` lies on the straight segment from `a` to "
                "`b`, both ends included, else `False`; a and b may be the same point",
                result="cross == 0 and min(a, b) <= c <= max(a, b)",
                bad="cross == 0",
                edges=(((0, 0), (2, 2), (3, 3)), ((0, 0), (0, 2), (0, 2)), ((1, 1), (1, 1), (2, 2))),
            ),
        ],
        edges=(((0, 0), (0, 0), (1, 1)), ((0, 0), (2, 2), (1, 0)), ((3, 3), (1, 1), (0, 2))),
    ),
    Family(
        "polygon_measure",
        POLYGON + "Define `$f(corners)`: $what.",
        """
from math import gcd


def $f(corners):
    pairs = list(zip(corners, corners[1:] + corners[:1]))
    doubled = sum(a[0] * b[1] - b[0] * a[1] for a, b in pairs)
    border = sum(gcd(a[0] - b[0], a[1] - b[1]) for a, b in pairs)
    return $result
""",
        {"$result": "$bad"},
        polygon,
        [
            variant(
                ([(0, 0), (3, 0), (0, 3)],),
                9,
                f="doubled_area",
                what="twice its area, as a positive integer",
                result="abs(doubled)",
                bad="doubled",
            ),
            variant(
                ([(0, 0), (3, 0), (0, 3)],),
                True,
                f="is_counterclockwise",
                what="`True` if the corners are given counterclockwise (x grows to the right, y upwards), else `False`",
                result="doubled > 0",
                bad="corners[1] > corners[-1]",
                edges=(([(4, 0), (0, 0), (0, 4)],), ([(4, 4), (0, 0), (4, 0)],)),
            ),
            variant(
                ([(0, 0), (3, 0), (0, 3)],),
                9,
                f="border_points",
                what="the number of points with integer coordinates on its border, corners included",
                result="border",
                bad="len(corners)",
            ),
            variant(
                ([(0, 0), (3, 0), (0, 3)],),
                1,
                f="inner_points",
                what="the number of points with integer coordinates strictly inside it",
                result="(abs(doubled) - border + 2) // 2",
                bad="(abs(doubled) - border) // 2",
            ),
        ],
        edges=POLYGONS,
    ),
    Family(
        "polygon_shape",
        POLYGON + "No three successive corners lie on one line. Define `$f(corners)`: $what.",
        """
def $f(corners):
    turns = []
    for i, b in enumerate(corners):
        a, c = corners[i - 1], corners[(i + 1) % len(corners)]
        turns.append((b[0] - a[0]) * (c[1] - b[1]) - (b[1] - a[1]) * (c[0] - b[0]))
    doubled_area = sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(corners, corners[1:] + corners[:1]))
    corner_dots = [
        (corners[i - 1][0] - b[0]) * (corners[(i + 1) % len(corners)][0] - b[0])
        + (corners[i - 1][1] - b[1]) * (corners[(i + 1) % len(corners)][1] - b[1])
        for i, b in enumerate(corners)
    ]
    return $result
""",
        {"$result": "$bad"},
        lambda rng: next(
            found
            for found in iter(lambda: polygon(rng), None)
            if all(
                (b[0] - a[0]) * (c[1] - b[1]) != (b[1] - a[1]) * (c[0] - b[0])
                for a, b, c in zip(found[0], found[0][1:] + found[0][:1], found[0][2:] + found[0][:2], strict=True)
            )
        ),
        [
            variant(
                ([(0, 0), (4, 0), (4, 4), (2, 1), (0, 4)],),
                False,
                f="is_convex",
                what="`True` if it is convex, that is all inner angles are less than 180 degrees, else `False`",
                result="min(turns) > 0 or max(turns) < 0",
                bad="min(turns) > 0",
            ),
            variant(
                ([(0, 0), (4, 0), (4, 4), (2, 1), (0, 4)],),
                1,
                f="count_reflex_corners",
                what="the number of its corners whose inner angle is greater than 180 degrees",
                bad="sum(turn < 0 for turn in turns)",
                result="sum((turn < 0) != (doubled_area < 0) for turn in turns)",
            ),
            variant(
                ([(0, 0), (3, 0), (0, 4)],),
                1,
                f="count_right_corners",
                what="the number of its corners at which the two sides are at a right angle to each other",
                result="corner_dots.count(0)",
                bad="sum(a[0] == b[0] or a[1] == b[1] for a, b in zip(corners, corners[1:]))",
            ),
        ],
        edges=POLYGONS,
    ),
    Family(
        "point_in_polygon",
        POLYGON + "Define `$f(corners, point)`: $what.",
        """
def $f(corners, point):
    x, y = point
    inside = False
    for (ax, ay), (bx, by) in zip(corners, corners[1:] + corners[:1]):
        cross = (bx - ax) * (y - ay) - (by - ay) * (x - ax)
        if cross == 0 and min(ax, bx) <= x <= max(ax, bx) and min(ay, by) <= y <= max(ay, by):
            return $border
        if (ay > y) != (by > y) and (cross > 0) == (by > ay):
            inside = not inside
    return $result
""",
        {"return $border": "return $bad"},
        lambda rng: (polygon(rng)[0], (rng.randint(-1, 4), rng.randint(0, 5))),
        [
            variant(
                ([(0, 0), (3, 0), (0, 3)], (1, 1)),
                True,
                f="is_inside_or_on_border",
                border="True",
                bad="False",
                what="`True` if the point, a tuple of two integers, lies inside the polygon or on its border, "
                "else `False`",
                result="inside",
            ),
            variant(
                ([(0, 0), (3, 0), (0, 3)], (1, 2)),
                False,
                f="is_strictly_inside",
                border="False",
                bad="True",
                what="`True` if the point, a tuple of two integers, lies inside the polygon and not on its "
                "border, else `False`",
                result="inside",
            ),
            variant(
                ([(0, 0), (3, 0), (0, 3)], (1, 2)),
                "border",
                f="locate_point",
                border='"border"',
                bad='"inside"',
                what='`"inside"`, `"border"` or `"outside"`, as the point, a tuple of two integers, lies strictly '
                "inside the "
                "polygon, on its border or elsewhere",
                result='"inside" if inside else "outside"',
            ),
        ],
        edges=(
            ([(0, 0), (4, 0), (4, 3)], (4, 3)),
            ([(0, 0), (0, 2), (2, 2), (2, 0)], (1, 1)),
            ([(0, 0), (0, 2), (2, 2), (2, 0)], (3, 2)),
            ([(0, 0), (4, 0), (4, 4), (2, 1), (0, 4)], (2, 2)),
            ([(0, 0), (4, 0), (4, 4), (2, 1), (0, 4)], (1, 1)),
        ),
    ),
    Family(
        "two_rectangles",
        RECTANGLE + "Define `$f(first, second)`: $what.",
        """
def $f(first, second):
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    common = (max(first[0], second[0]), max(first[1], second[1]), min(first[2], second[2]), min(first[3], second[3]))
    areas = sum((r[2] - r[0]) * (r[3] - r[1]) for r in (first, second))
    return $result
""",
        {"$result": "$bad"},
        lambda rng: (rectangle(rng), rectangle(rng)),
        [
            variant(
                ((0, 0, 2, 2), (1, 1, 3, 3)),
                1,
                f="overlap_area",
                what="the area that the two rectangles have in common, 0 if none",
                result="max(width, 0) * max(height, 0)",
                bad="max(width * height, 0)",
            ),
            variant(
                ((0, 0, 2, 2), (1, 1, 3, 3)),
                7,
                f="union_area",
                what="the area covered by at least one of the two rectangles",
                result="areas - max(width, 0) * max(height, 0)",
                bad="areas - width * height",
                edges=(((0, 0, 1, 1), (3, 3, 5, 5)),),
            ),
            variant(
                ((0, 0, 2, 2), (2, 1, 3, 3)),
                True,
                f="rectangles_touch",
                what="`True` if the two rectangles have at least one "
                "point in common, where the border belongs to a rectangle, else `False`",
                result="width >= 0 and height >= 0",
                bad="width > 0 and height > 0",
            ),
            variant(
                ((0, 0, 2, 2), (1, 1, 3, 3)),
                (1, 1, 2, 2),
                f="common_rectangle",
                what="the rectangle that the two have in common, in the same form, or `None` if their common area is 0",
                result="common if min(width, height) > 0 else None",
                bad="common if min(width, height) >= 0 else None",
            ),
        ],
        edges=(
            ((0, 0, 1, 1), (1, 1, 2, 2)),
            ((0, 0, 9, 9), (2, 2, 4, 5)),
            ((0, 0, 1, 1), (4, 4, 6, 6)),
            ((0, 0, 2, 2), (0, 2, 2, 4)),
            ((0, 0, 3, 2), (0, 0, 3, 2)),
        ),
    ),
    Family(
        "many_rectangles",
        RECTANGLE
        + "Its cells are the unit squares that it consists of. Define `$f(rectangles)` for a list of rectangles: "
        "$what, 0 for "
        "the empty list.",
        """
from collections import Counter


def $f(rectangles):
    cover = Counter()
    for left, bottom, right, top in rectangles:
        cover.update((x, y) for x in range(left, right) for y in range(bottom, top))
    return $result
""",
        {"$result": "$bad"},
        lambda rng: ([rectangle(rng) for _ in range(rng.randint(2, 4))],),
        [
            variant(
                ([(0, 0, 2, 2), (1, 1, 3, 3)],),
                7,
                f="covered_area",
                what="the number of different cells that belong to at least one of them",
                result="len(cover)",
                bad="sum(cover.values())",
            ),
            variant(
                ([(0, 0, 2, 2), (1, 1, 3, 3)],),
                6,
                f="area_covered_once",
                what="the number of cells that belong to exactly one of them",
                result="sum(count == 1 for count in cover.values())",
                bad="len(cover)",
            ),
            variant(
                ([(0, 0, 2, 2), (1, 1, 3, 3)],),
                2,
                f="deepest_overlap",
                what="the greatest number of them to which one cell belongs",
                result="max(cover.values(), default=0)",
                bad="len(rectangles)",
            ),
            variant(
                ([(0, 0, 2, 2), (1, 1, 3, 3)],),
                1,
                f="area_covered_repeatedly",
                what="the number of different cells that belong to at least two of them",
                result="sum(count > 1 for count in cover.values())",
                bad="sum(cover.values()) - len(cover)",
                edges=(([(0, 0, 1, 1)] * 3,),),
            ),
        ],
        edges=(([],), ([(0, 0, 2, 3)],), ([(0, 0, 2, 2), (0, 0, 2, 2)],), ([(0, 0, 1, 1), (5, 5, 6, 7)],)),
    ),
    Family(
        "circles",
        "A circle is a tuple (x, y, radius) of integers with a positive radius. Define `$f($arguments)`: $what.",
        """
def $f($arguments):
    $body
""",
        {"$body": "$bad"},
        lambda rng: tuple((*point(rng, 4), rng.randint(1, 5)) for _ in range(2)),
        [
            variant(
                ((0, 0, 2), (3, 0, 1)),
                "touching",
                f="relate_circles",
                arguments="first, second",
                what='how many points the two circle lines have in common: `"same"` if the circles are the same, '
                '`"crossing"` for '
                'two points, `"touching"` for exactly one and `"apart"` for none (also if one lies within the other)',
                body="square = (first[0] - second[0]) ** 2 + (first[1] - second[1]) ** 2\n    if first == second:\n"
                '        return "same"\n    least, most = (first[2] - second[2]) ** 2, (first[2] + second[2]) ** 2\n'
                '    if square in (least, most):\n        return "touching"\n'
                '    return "crossing" if least < square < most else "apart"',
                bad="square = (first[0] - second[0]) ** 2 + (first[1] - second[1]) ** 2\n    if first == second:\n"
                '        return "same"\n    most = (first[2] + second[2]) ** 2\n    if square == most:\n'
                '        return "touching"\n    return "crossing" if square < most else "apart"',
                edges=(((0, 0, 1), (0, 0, 1)), ((0, 0, 5), (1, 0, 1)), ((0, 0, 5), (4, 0, 1)), ((0, 0, 1), (5, 5, 1))),
            ),
            variant(
                ((0, 0, 1),),
                5,
                f="grid_points_in_circle",
                arguments="circle",
                what="the number of points with integer coordinates inside the circle or exactly on it",
                body="radius = circle[2]\n    span = range(-radius, radius + 1)\n"
                "    return sum(x * x + y * y <= radius * radius for x in span for y in span)",
                bad="radius = circle[2]\n    span = range(-radius, radius + 1)\n"
                "    return sum(x * x + y * y < radius * radius for x in span for y in span)",
                edges=(((3, -2, 2),), ((1, 1, 5),)),
                draw=lambda rng: ((*point(rng), rng.randint(1, 12)),),
            ),
            variant(
                ((0, 0, 2), [(0, 1), (2, 0), (2, 2)]),
                [(0, 1), (2, 0)],
                f="points_in_circle",
                arguments="circle, points",
                what="the list of those of the points, tuples (x, y) of integers, that lie inside the circle or "
                "exactly on it, in "
                "their order",
                body="x, y, radius = circle\n"
                "    return [p for p in points if (p[0] - x) ** 2 + (p[1] - y) ** 2 <= radius * radius]",
                bad="x, y, radius = circle\n    return [p for p in points if abs(p[0] - x) <= radius >= abs(p[1] - y)]",
                edges=(((0, 0, 1), []), ((0, 0, 5), [(3, 4), (4, 4)])),
                draw=lambda rng: ((*point(rng, 2), rng.randint(2, 5)), points(rng, 4, 7)),
            ),
        ],
    ),
    Family(
        "point_set",
        "`points` is a list of different tuples (x, y) of integers. Define `$f(points)`: $what.",
        """
from itertools import combinations


def $f(points):
    pairs = [((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2, min(a, b), max(a, b)) for a, b in combinations(points, 2)]
    return $result
""",
        {"$result": "$bad"},
        lambda rng: (points(rng, 3, 7, 5),),
        [
            variant(
                ([(0, 0), (3, 4), (3, 3)],),
                1,
                f="closest_squared_distance",
                bad="pairs[0][0] if pairs else None",
                result="min(pairs)[0] if pairs else None",
                what="the least square of the distance between two of the points, `None` if there are fewer than two",
            ),
            variant(
                ([(0, 0), (3, 4), (3, 3)],),
                ((3, 3), (3, 4)),
                f="closest_pair",
                bad="min(pairs, key=lambda pair: pair[0])[1:] if pairs else None",
                result="min(pairs)[1:] if pairs else None",
                what="the tuple (p, q) of the two points with the "
                "least distance, p < q; if several pairs tie, the one with the smallest p, then the smallest q "
                "(points are compared "
                "as tuples); `None` if there are fewer than two points",
                edges=(([(5, 5), (5, 6), (0, 0), (0, 1)],), ([(2, 0), (1, 0), (0, 0)],)),
            ),
            variant(
                ([(0, 0), (3, 4), (3, 3)],),
                25,
                f="greatest_squared_distance",
                result="max(pairs)[0] if pairs else 0",
                bad="sum((max(axis) - min(axis)) ** 2 for axis in zip(*points))",
                what="the greatest square of the distance between two of the points, 0 if there are fewer than two",
            ),
            variant(
                ([(0, 0), (1, 0), (0, 1)],),
                2,
                f="count_distances",
                result="len({square for square, *_ in pairs})",
                bad="len(pairs)",
                what="the number of different distances between two of the points, 0 if there are fewer than two",
            ),
        ],
        edges=(([],), ([(1, 1)],), ([(0, 0), (2, 0)],), ([(0, 0), (1, 0), (0, 1), (1, 1)],)),
    ),
    Family(
        "bounding_box",
        "`points` is a non-empty list of tuples (x, y) of integers. Define `$f(points)`: $what.",
        """
def $f(points):
    xs, ys = zip(*points)
    return $result
""",
        {"$result": "$bad"},
        lambda rng: (points(rng, 3, 7, 6),),
        [
            variant(
                ([(1, 5), (3, 2)],),
                (1, 2, 3, 5),
                f="bounding_box",
                result="(min(xs), min(ys), max(xs), max(ys))",
                bad="(*min(points), *max(points))",
                what="the tuple (least x, least y, greatest x, greatest y)",
            ),
            variant(
                ([(1, 5), (3, 2)],),
                6,
                f="bounding_area",
                result="(max(xs) - min(xs)) * (max(ys) - min(ys))",
                bad="(max(xs) - min(xs) + 1) * (max(ys) - min(ys) + 1)",
                what="the area of the smallest rectangle with sides "
                "parallel to the axes that holds all the points (0 if it is only a segment or a point)",
            ),
            variant(
                ([(1, 5), (3, 2)],),
                3,
                f="bounding_square_side",
                result="max(max(xs) - min(xs), max(ys) - min(ys))",
                bad="max(xs) - min(xs)",
                what="the least side length of a square with sides parallel to the axes that holds all the points",
            ),
        ],
        edges=(([(2, 3)],), ([(0, 0), (0, 4)],), ([(-3, -1), (-1, -5)],)),
    ),
    Family(
        "hull",
        "The convex hull of points is the smallest convex polygon that holds them all; its corners are points at "
        "which it really bends "
        "(points in the middle of a side do not count). `points` is a list of at least three different tuples (x, "
        "y) of integers, not "
        "all on one line. Define `$f(points)`: $what.",
        """
def $f(points):
    def chain(ordered):
        result = []
        for x, y in ordered:
            while len(result) > 1:
                (ax, ay), (bx, by) = result[-2:]
                if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0:
                    break
                result.pop()
            result.append((x, y))
        return result[:-1]

    corners = chain(sorted(points)) + chain(sorted(points, reverse=True))
    return $result
""",
        {"> 0:": ">= 0:"},
        lambda rng: (list(dict.fromkeys([(0, 0), (4, 0), (0, 4), *points(rng, 2, 6, 4)])),),
        [
            variant(
                ([(0, 0), (2, 0), (0, 2), (1, 1)],),
                3,
                f="count_hull_corners",
                result="len(corners)",
                what="the number of corners of their convex hull",
            ),
            variant(
                ([(0, 0), (2, 0), (0, 2), (1, 1)],),
                [(0, 0), (2, 0), (0, 2)],
                f="hull_corners",
                result="corners",
                what="the list of the corners of their convex hull counterclockwise (x grows to the right, y "
                "upwards), starting with "
                "the smallest tuple",
            ),
            variant(
                ([(0, 0), (2, 0), (0, 2), (1, 1)],),
                [(1, 1)],
                f="points_off_hull_corners",
                result="[p for p in points if p not in corners]",
                what="the list of those points that are not corners of their convex hull, in their order in `points`",
            ),
        ],
        edges=(
            ([(0, 0), (4, 0), (0, 4)],),
            ([(0, 0), (1, 0), (2, 0), (2, 2), (0, 2), (1, 1)],),
            ([(3, 3), (0, 0), (2, 2), (1, 1), (3, 0)],),
        ),
    ),
    Family(
        "segments",
        "A segment is a tuple (p, q) of two different points, its ends, which are tuples (x, y) of integers. "
        "Define `$f(first, second)`: "
        "$what.",
        """
def $f(first, second):
    def side(a, b, c):
        cross = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
        return (cross > 0) - (cross < 0)

    a, b, c, d = *first, *second
    sides = side(a, b, c), side(a, b, d), side(c, d, a), side(c, d, b)
    dots = (b[0] - a[0]) * (d[0] - c[0]) + (b[1] - a[1]) * (d[1] - c[1])
    parallel = (b[0] - a[0]) * (d[1] - c[1]) == (b[1] - a[1]) * (d[0] - c[0])
    return $result
""",
        {"$result": "$bad"},
        lambda rng: next(
            pair
            for pair in iter(lambda: tuple((point(rng, 2), point(rng, 2)) for _ in range(2)), None)
            if all(p != q for p, q in pair)
        ),
        [
            variant(
                (((0, 0), (2, 2)), ((0, 2), (2, 0))),
                True,
                f="segments_cross",
                what="`True` if the segments have exactly one point in "
                "common and it is not an end of either, else `False`",
                result="sides[0] * sides[1] < 0 and sides[2] * sides[3] < 0",
                bad="sides[0] * sides[1] <= 0 and sides[2] * sides[3] <= 0",
            ),
            variant(
                (((0, 0), (2, 2)), ((1, 1), (5, 0))),
                True,
                f="segments_meet",
                what="`True` if the segments have at least one point in common, ends included, else `False`",
                bad="sides[0] != sides[1] and sides[2] != sides[3]",
                result="sides[0] * sides[1] <= 0 and sides[2] * sides[3] <= 0 and all(\n"
                "        max(min(a[i], b[i]), min(c[i], d[i])) <= min(max(a[i], b[i]), max(c[i], d[i])) for i in "
                "(0, 1)\n    )",
                edges=((((0, 0), (2, 0)), ((1, 0), (3, 0))), (((0, 0), (1, 0)), ((2, 0), (3, 0)))),
            ),
            variant(
                (((0, 0), (2, 2)), ((1, 0), (2, 1))),
                "parallel",
                f="relate_directions",
                what='`"parallel"`, `"perpendicular"` or '
                '`"neither"`, as the straight lines through the segments have the same direction (also if they '
                "are the same line), are "
                "at a right angle, or neither",
                result='"perpendicular" if dots == 0 else "parallel" if parallel else "neither"',
                bad='"perpendicular" if dots == 0 else "parallel" if sides[0] == sides[1] else "neither"',
            ),
        ],
        edges=(
            (((0, 0), (2, 0)), ((1, 0), (1, 3))),
            (((0, 0), (2, 0)), ((0, 1), (2, 1))),
            (((0, 0), (3, 1)), ((3, 1), (0, 5))),
        ),
    ),
    Family(
        "move_points",
        "`points` is a list of tuples (x, y) of integers; x grows to the right and y upwards. Define "
        "`$f(points)`: the list of the points, in "
        "the same order, $what; the empty list gives `[]`.",
        """
def $f(points):
    return [$image for x, y in points]
""",
        {"$image": "$bad"},
        lambda rng: (points(rng, 2, 5),),
        [
            variant(
                ([(1, 2)],),
                [(-2, 1)],
                f="turn_left",
                image="(-y, x)",
                bad="(y, -x)",
                what="turned by 90 degrees counterclockwise about (0, 0)",
            ),
            variant(
                ([(1, 2)],),
                [(2, 1)],
                f="mirror_at_diagonal",
                image="(y, x)",
                bad="(-y, -x)",
                what="mirrored at the line on which x and y are equal",
            ),
            variant(
                ([(1, 2)],),
                [(5, 2)],
                f="mirror_at_vertical",
                image="(6 - x, y)",
                bad="(3 - x, y)",
                what="mirrored at the vertical line x = 3",
            ),
            variant(
                ([(1, 2)],),
                [(1, 0)],
                f="turn_half_about_point",
                image="(2 - x, 2 - y)",
                bad="(1 - x, 1 - y)",
                what="turned by 180 degrees about the point (1, 1)",
            ),
        ],
        edges=(([],), ([(0, 0)],), ([(3, 3), (-1, 4)],)),
    ),
    Family(
        "robot_walk",
        "A robot starts at (0, 0) and looks upwards, the direction in which y grows (x grows to the right). In "
        "the text `moves`, L and R turn "
        "it by 90 degrees to its left or right, and F moves it ahead by 1. Define `$f(moves)`: $what.",
        """
def $f(moves):
    x, y, dx, dy = 0, 0, 0, 1
    visited = [(0, 0)]
    for move in moves:
        if move == "L":
            dx, dy = -dy, dx
        elif move == "R":
            dx, dy = dy, -dx
        else:
            x, y = x + dx, y + dy
            visited.append((x, y))
    return $result
""",
        {"$result": "$bad"},
        lambda rng: ("".join(rng.choice("FFFLR") for _ in range(rng.randint(4, 16))),),
        [
            variant(
                ("FRFF",),
                (2, 1),
                f="robot_position",
                result="(x, y)",
                bad="(-x, y)",
                what="the tuple (x, y) of its position at the end",
            ),
            variant(
                ("FRFRFRF",),
                4,
                f="robot_count_places",
                result="len(set(visited))",
                bad="len(visited)",
                what="the number of different points on which it has stood, the start included",
            ),
            variant(
                ("FRFRFRFF",),
                (0, 0),
                f="robot_first_repeat",
                edges=(("FLLF",), ("FFLLFF",)),
                result="next((p for i, p in enumerate(visited) if p in visited[:i]), None)",
                bad="next((p for p in visited if visited.count(p) > 1), None)",
                what="the tuple (x, y) of the first point that it reaches by a move F although it has stood there "
                "before (at the start "
                "or later), or `None` if there is none",
            ),
            variant(
                ("FRFF",),
                3,
                f="robot_farthest",
                result="max(abs(a) + abs(b) for a, b in visited)",
                bad="abs(x) + abs(y)",
                what="the greatest value of |x| + |y| among all points on which it has stood, the start included",
                edges=(("FLLF",),),
            ),
        ],
        edges=(("",), ("LR",), ("F",), ("FLFLFLF",)),
    ),
    Family(
        "rounded_length",
        "$given Define `$f(points)`: $what, as a `float` rounded with `round(..., 2)`.",
        """
from math import dist


def $f(points):
    return round(sum(dist(a, b) for a, b in zip(points$cut, $others)), 2)
""",
        {", $others": ", $bad"},
        lambda rng: (points(rng, 3, 6),),
        [
            variant(
                ([(0, 0), (3, 4), (3, 5)],),
                6.0,
                f="path_length",
                cut="",
                others="points[1:]",
                given="`points` is a list of at least two tuples (x, y) of integers.",
                bad="points[1:-1]",
                what="the length of the path that goes straight from each point to the next, from the first to "
                "the last",
            ),
            variant(
                ([(0, 0), (3, 4), (3, 0)],),
                12.0,
                f="perimeter",
                cut="",
                others="points[1:] + points[:1]",
                bad="points[1:]",
                given="`points` is the list of the corners of a polygon in order, at least two tuples (x, y) of "
                "integers (with two, it "
                "is walked there and back).",
                what="the length of its border, the side from the last corner back to the first included",
            ),
            variant(
                ([(0, 0), (3, 4), (3, 0)],),
                8.0,
                f="length_of_star",
                cut="[1:]",
                others="[points[0]] * len(points)",
                bad="points",
                given="`points` is a list of at least two tuples (x, y) of integers.",
                what="the sum of the straight-line distances from the first point to each of the others",
            ),
        ],
        edges=(([(0, 0), (1, 1)],), ([(0, 0), (0, 2), (2, 2), (2, 0)],), ([(5, 0), (0, 0), (0, 0), (0, 7)],)),
    ),
    Family(
        "farthest_house",
        "The first line of the input has two integers, the position x y of a shop, the second a positive integer "
        "n; n lines follow, each with "
        "a name (letters only, no name twice) and two integers x y, the position of a house. All parts of a line "
        "are separated by single "
        "spaces. Distance is measured $measure. Write a program that prints $what.",
        """
x, y = map(int, input().split())
houses = []
for _ in range(int(input())):
    name, a, b = input().split()
    dx, dy = abs(int(a) - x), abs(int(b) - y)
    houses.append(($distance, name))
$show
""",
        {"$show": "$bad"},
        lambda rng: (lambda names: lines(point(rng, 3), len(names), *((name, *point(rng, 3)) for name in names)))(
            rng.sample(["Ash", "Birch", "Cedar", "Elm", "Fir"], rng.randint(2, 5))
        ),
        [
            variant(
                "0 0\n3\nElm 1 2\nAsh 3 0\nFir 1 0\n",
                "Fir 1",
                distance="dx + dy",
                measure="along the axes, as |dx| + |dy|",
                show="distance, name = min(houses)\nprint(name, distance)",
                bad="distance, name = max(houses)\nprint(name, distance)",
                what="the name of the nearest house, the alphabetically first if several tie, and its distance, "
                "separated by a space",
            ),
            variant(
                "0 0\n3\nElm 1 2\nAsh 3 0\nFir 1 0\n",
                "Ash",
                distance="-dx * dx - dy * dy",
                measure="in a straight line",
                show="print(min(houses)[1])",
                bad="print(max(houses)[1])",
                what="the name of the farthest house, the alphabetically first if several tie",
            ),
            variant(
                "0 0\n3\nElm 1 2\nAsh 3 0\nFir 1 0\n",
                "Fir\nAsh\nElm",
                distance="dx + dy",
                measure="along the axes, as |dx| + |dy|",
                show="for _, name in sorted(houses):\n    print(name)",
                bad="for _, name in sorted(houses, key=lambda house: house[0]):\n    print(name)",
                what="the names, one a line, from the nearest to the farthest, those at equal distance in "
                "alphabetical order",
            ),
        ],
        edges=("5 5\n1\nElm 5 5\n", "0 0\n2\nFir 0 1\nAsh 1 0\n"),
        stdio=True,
    ),
    Family(
        "rooms",
        "The input has a positive integer n on its first line and n lines with four integers x1 y1 x2 y2, "
        "separated by spaces: two opposite "
        "corners, in any order, of a rectangle with sides parallel to the axes; x1 and x2 differ, and so do y1 "
        "and y2. Write a program that "
        "prints $what.",
        """
areas = []
for _ in range(int(input())):
    a, b, c, d = map(int, input().split())
    areas.append($value)
print($result)
""",
        {"$value": "$bad"},
        lambda rng: (lambda rows: lines(len(rows), *rows))(
            [(a, b, a + rng.choice([-3, -1, 2, 4]), b + rng.choice([-2, -1, 1, 5])) for a, b in points(rng, 2, 5)]
        ),
        [
            variant(
                "2\n0 0 2 3\n1 1 0 0\n",
                "7",
                value="abs(a - c) * abs(b - d)",
                bad="(c - a) * (d - b)",
                result="sum(areas)",
                what="the sum of their areas (parts that overlap count as often as they are covered)",
            ),
            variant(
                "2\n0 0 2 3\n1 1 0 0\n",
                "10",
                value="2 * (abs(a - c) + abs(b - d))",
                bad="2 * (c - a + d - b)",
                result="max(areas)",
                what="the greatest of their perimeters",
            ),
            variant(
                "2\n0 0 2 3\n1 1 0 0\n",
                "1",
                value="abs(a - c) == abs(b - d)",
                bad="c - a == d - b",
                result="sum(areas)",
                what="how many of them are squares",
                edges=("1\n0 2 2 0\n",),
            ),
        ],
        edges=("1\n0 0 1 1\n", "1\n4 5 1 7\n"),
        stdio=True,
    ),
]
