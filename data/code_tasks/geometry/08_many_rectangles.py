DRAW = lambda rng: ([rectangle(rng) for _ in range(rng.randint(2, 4))],)
EDGES = [([],), ([(0, 0, 2, 3)],), ([(0, 0, 2, 2), (0, 0, 2, 2)],), ([(0, 0, 1, 1), (5, 5, 6, 7)],)]

"""A rectangle is a tuple (left, bottom, right, top) of integers with left < right and bottom < top. Its cells are the
unit squares that it consists of. Define `covered_area(rectangles)` for a list of rectangles: the number of different
cells that belong to at least one of them, 0 for the empty list."""
EXAMPLE = ([(0, 0, 2, 2), (1, 1, 3, 3)],), 7

from collections import Counter


def covered_area(rectangles):
    cover = Counter()
    for left, bottom, right, top in rectangles:
        cover.update((x, y) for x in range(left, right) for y in range(bottom, top))
    # wrong: return sum(cover.values())
    return len(cover)

"""A rectangle is a tuple (left, bottom, right, top) of integers with left < right and bottom < top. Its cells are the
unit squares that it consists of. Define `area_covered_once(rectangles)` for a list of rectangles: the number of cells
that belong to exactly one of them, 0 for the empty list."""
EXAMPLE = ([(0, 0, 2, 2), (1, 1, 3, 3)],), 6

from collections import Counter


def area_covered_once(rectangles):
    cover = Counter()
    for left, bottom, right, top in rectangles:
        cover.update((x, y) for x in range(left, right) for y in range(bottom, top))
    # wrong: return len(cover)
    return sum(count == 1 for count in cover.values())

"""A rectangle is a tuple (left, bottom, right, top) of integers with left < right and bottom < top. Its cells are the
unit squares that it consists of. Define `deepest_overlap(rectangles)` for a list of rectangles: the greatest number of
them to which one cell belongs, 0 for the empty list."""
EXAMPLE = ([(0, 0, 2, 2), (1, 1, 3, 3)],), 2

from collections import Counter


def deepest_overlap(rectangles):
    cover = Counter()
    for left, bottom, right, top in rectangles:
        cover.update((x, y) for x in range(left, right) for y in range(bottom, top))
    # wrong: return len(rectangles)
    return max(cover.values(), default=0)

"""A rectangle is a tuple (left, bottom, right, top) of integers with left < right and bottom < top. Its cells are the
unit squares that it consists of. Define `area_covered_repeatedly(rectangles)` for a list of rectangles: the number of
different cells that belong to at least two of them, 0 for the empty list."""
EXAMPLE = ([(0, 0, 2, 2), (1, 1, 3, 3)],), 1
EDGES = [([(0, 0, 1, 1)] * 3,)]

from collections import Counter


def area_covered_repeatedly(rectangles):
    cover = Counter()
    for left, bottom, right, top in rectangles:
        cover.update((x, y) for x in range(left, right) for y in range(bottom, top))
    # wrong: return sum(cover.values()) - len(cover)
    return sum(count > 1 for count in cover.values())
