DRAW = lambda rng: (
    (lambda make: make(make, 3))(
        lambda make, depth: [
            rng.randint(0, 9) if depth == 0 or rng.random() < 0.6 else make(make, depth - 1)
            for _ in range(rng.randint(0, 4))
        ]
    ),
)
EDGES = [([],), ([[]],), ([1, 2],), ([[1], [[2]]],)]

"""`items` is a list whose entries are integers or again such lists, to any depth. Define `flatten(items)`: the list of
all the integers, in order."""
EXAMPLE = ([1, [2, [3]], []],), [1, 2, 3]

def flatten(items):
    if not isinstance(items, list):
        return [items]
    # wrong: return [number for item in items for number in (item if isinstance(item, list) else [item])]
    return [number for item in items for number in flatten(item)]

"""`items` is a list whose entries are integers or again such lists, to any depth. Define `nesting_level(items)`: the
depth of its nesting: 1 for a list without lists in it, otherwise 1 more than the greatest depth among the lists in
it."""
EXAMPLE = ([1, [2, [3]], []],), 3

def nesting_level(items):
    if not isinstance(items, list):
        return 0
    # wrong: return 1 + sum(map(nesting_level, items))
    return 1 + max(map(nesting_level, items), default=0)

"""`items` is a list whose entries are integers or again such lists, to any depth. Define `nested_sum(items)`: the sum
of all the integers, 0 if there are none."""
EXAMPLE = ([1, [2, [3]], []],), 6

def nested_sum(items):
    if not isinstance(items, list):
        return items
    # wrong: return sum(sum(item) if isinstance(item, list) else item for item in items)
    return sum(map(nested_sum, items))

"""`items` is a list whose entries are integers or again such lists, to any depth. Define `deep_reverse(items)`: a copy
in which the order of the entries is reversed in every list, at every depth."""
EXAMPLE = ([1, [2, [3]], []],), [[], [[3], 2], 1]

def deep_reverse(items):
    if not isinstance(items, list):
        return items
    # wrong: return items[::-1]
    return [deep_reverse(item) for item in items[::-1]]
