DRAW = lambda rng: (integers(rng, 0, 9, 2, 7), rng.randint(-12, 12))
EDGES = [([], 3), ([1], 5), ([1, 2, 3], 0), ([1, 2, 3], -1), ([1, 2, 3], 7)]

"""Define `rotate_left(items, count)`: a new list with the items moved `count` places to the left, where those that fall
off come in again at the other end. `count` may be negative (then they move to the other side) or greater than the
length. The empty list gives `[]`."""
EXAMPLE = ([1, 2, 3, 4], 1), [2, 3, 4, 1]

def rotate_left(items, count):
    if not items:
        return []
    # wrong: start = count
    start = count % len(items)
    return items[start:] + items[:start]

"""Define `rotate_right(items, count)`: a new list with the items moved `count` places to the right, where those that
fall off come in again at the other end. `count` may be negative (then they move to the other side) or greater than the
length. The empty list gives `[]`."""
EXAMPLE = ([1, 2, 3, 4], 1), [4, 1, 2, 3]

def rotate_right(items, count):
    if not items:
        return []
    # wrong: start = -count
    start = -count % len(items)
    return items[start:] + items[:start]
