DRAW = lambda rng: (integers(rng, -3, 8, 4, 9), rng.randint(0, 9))
EDGES = [([], 0), ([0], 0), ([0, 0], 0)]

"""Define `count_pairs_with_sum(numbers, total)`: the number of pairs of positions i < j whose numbers add up to
`total`."""
EXAMPLE = ([1, 3, 1, 3], 4), 4
EDGES = [([2, 5], 4)]

def count_pairs_with_sum(numbers, total):
    found = []
    for i, a in enumerate(numbers):
        # wrong: for j in range(i, len(numbers)):
        for j in range(i + 1, len(numbers)):
            if a + numbers[j] == total:
                found.append((i, j))
    return len(found)

"""Define `first_pair_with_sum(numbers, total)`: the tuple (i, j) of positions i < j, counted from 0, whose numbers add
up to `total`; the smallest i that has a partner, then the smallest j; `None` if there is no such pair."""
EXAMPLE = ([1, 3, 1, 3], 4), (0, 1)
EDGES = [([2, 5, 2], 4), ([2, 1], 4)]

def first_pair_with_sum(numbers, total):
    found = []
    for i, a in enumerate(numbers):
        # wrong: for j in range(i, len(numbers)):
        for j in range(i + 1, len(numbers)):
            if a + numbers[j] == total:
                found.append((i, j))
    return min(found, default=None)

"""Define `value_pairs_with_sum(numbers, total)`: the ascending list of the different tuples (a, b) with a <= b and a +
b == `total` that two entries at different positions of `numbers` form; `[]` if there are none."""
EXAMPLE = ([3, 1, 1, 2, 2], 4), [(1, 3), (2, 2)]
EDGES = [([2, 5], 4), ([2, 2, 2], 4)]

def value_pairs_with_sum(numbers, total):
    found = []
    for i, a in enumerate(numbers):
        # wrong: for j in range(i, len(numbers)):
        for j in range(i + 1, len(numbers)):
            if a + numbers[j] == total:
                found.append((min(a, numbers[j]), max(a, numbers[j])))
    return sorted(set(found))
