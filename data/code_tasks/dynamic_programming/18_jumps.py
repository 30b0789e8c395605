DRAW = lambda rng: ((lambda row: [max(n, rng.choice([0, 1])) for n in row])(integers(rng, 0, 3, 4, 9)),)
EDGES = [([],), ([0],), ([0, 1],), ([1, 1],), ([3, 0, 0, 0],)]

"""You stand on the first entry of `jumps`, a list of non-negative integers; from an entry with the number k you may go
1 to k places to the right, but not past the last entry. Define `can_reach_end(jumps)`: `True` if you can get to the
last entry, else `False`; for the empty list it is `False`."""
EXAMPLE = ([2, 1, 0, 4],), False
EDGES = [([2, 0, 1],), ([1, 0, 0],)]

def can_reach_end(jumps):
    steps = [0] + [None] * (len(jumps) - 1)
    for i, jump in enumerate(jumps):
        # wrong: for j in range(i, i + jump + 2):
        for j in range(i + 1, i + jump + 1):
            if j < len(jumps) and steps[i] is not None and (steps[j] is None or steps[j] > steps[i] + 1):
                steps[j] = steps[i] + 1
    return bool(jumps) and steps[-1] is not None

"""You stand on the first entry of `jumps`, a list of non-negative integers; from an entry with the number k you may go
1 to k places to the right, but not past the last entry. Define `fewest_jumps(jumps)`: the least number of moves to the
last entry, 0 if you already stand there, `None` if it cannot be reached; for the empty list it is `None`."""
EXAMPLE = ([2, 3, 1, 1, 4],), 2

def fewest_jumps(jumps):
    steps = [0] + [None] * (len(jumps) - 1)
    for i, jump in enumerate(jumps):
        # wrong: for j in range(i + 1, i + jump):
        for j in range(i + 1, i + jump + 1):
            if j < len(jumps) and steps[i] is not None and (steps[j] is None or steps[j] > steps[i] + 1):
                steps[j] = steps[i] + 1
    return steps[-1] if jumps else None

"""You stand on the first entry of `jumps`, a list of non-negative integers; from an entry with the number k you may go
exactly k places to the right, but not past the last entry. Define `exact_jump_positions(jumps)`: the ascending list of
the positions (from 0, the first entry included) on which you can stand; for the empty list it is `[]`."""
EXAMPLE = ([2, 3, 1, 2, 4],), [0, 2, 3]

def exact_jump_positions(jumps):
    steps = [0] + [None] * (len(jumps) - 1)
    for i, jump in enumerate(jumps):
        # wrong: for j in range(i + 1, i + jump + 1):
        for j in [i + jump]:
            if j < len(jumps) and steps[i] is not None and (steps[j] is None or steps[j] > steps[i] + 1):
                steps[j] = steps[i] + 1
    return [i for i, count in enumerate(steps) if count is not None] if jumps else []
