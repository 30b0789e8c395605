DRAW = lambda rng: (rectangle(rng), rectangle(rng))
EDGES = [
    ((0, 0, 1, 1), (1, 1, 2, 2)),
    ((0, 0, 9, 9), (2, 2, 4, 5)),
    ((0, 0, 1, 1), (4, 4, 6, 6)),
    ((0, 0, 2, 2), (0, 2, 2, 4)),
    ((0, 0, 3, 2), (0, 0, 3, 2)),
]

"""A rectangle is a tuple (left, bottom, right, top) of integers with left < right and bottom < top. Define
`overlap_area(first, second)`: the area that the two rectangles have in common, 0 if none."""
EXAMPLE = ((0, 0, 2, 2), (1, 1, 3, 3)), 1

def overlap_area(first, second):
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    # wrong: return max(width * height, 0)
    return max(width, 0) * max(height, 0)

"""A rectangle is a tuple (left, bottom, right, top) of integers with left < right and bottom < top. Define
`union_area(first, second)`: the area covered by at least one of the two rectangles."""
EXAMPLE = ((0, 0, 2, 2), (1, 1, 3, 3)), 7
EDGES = [((0, 0, 1, 1), (3, 3, 5, 5))]

def union_area(first, second):
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    areas = sum((r[2] - r[0]) * (r[3] - r[1]) for r in (first, second))
    # wrong: return areas - width * height
    return areas - max(width, 0) * max(height, 0)

"""A rectangle is a tuple (left, bottom, right, top) of integers with left < right and bottom < top. Define
`rectangles_touch(first, second)`: `True` if the two rectangles have at least one point in common, where the border
belongs to a rectangle, else `False`."""
EXAMPLE = ((0, 0, 2, 2), (2, 1, 3, 3)), True

def rectangles_touch(first, second):
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    # wrong: return width > 0 and height > 0
    return width >= 0 and height >= 0

"""A rectangle is a tuple (left, bottom, right, top) of integers with left < right and bottom < top. Define
`common_rectangle(first, second)`: the rectangle that the two have in common, in the same form, or `None` if their
common area is 0."""
EXAMPLE = ((0, 0, 2, 2), (1, 1, 3, 3)), (1, 1, 2, 2)

def common_rectangle(first, second):
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    common = (max(first[0], second[0]), max(first[1], second[1]), min(first[2], second[2]), min(first[3], second[3]))
    # wrong: return common if min(width, height) >= 0 else None
    return common if min(width, height) > 0 else None
