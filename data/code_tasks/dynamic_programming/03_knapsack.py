DRAW = lambda rng: ([(rng.randint(1, 6), rng.randint(1, 12)) for _ in range(rng.randint(2, 5))], rng.randint(4, 14))
EDGES = [([], 5), ([(3, 10)], 2), ([(3, 10)], 6), ([(1, 1)], 0)]

"""`items` is a list of tuples (weight, value) of positive integers; each may be taken at most once. Define
`knapsack_single(items, capacity)` for an integer `capacity` of at least 0: the greatest total value of items whose
total weight is at most `capacity`; 0 if nothing fits."""
EXAMPLE = ([(2, 3), (3, 4)], 4), 4

def knapsack_single(items, capacity):
    best = [0] + [0] * capacity
    for weight, value in items:
        # wrong: for room in range(weight, capacity + 1):
        for room in range(capacity, weight - 1, -1):
            best[room] = max(best[room], best[room - weight] + value)
    return best[capacity]

"""`items` is a list of tuples (weight, value) of positive integers; each may be taken any number of times. Define
`knapsack_repeated(items, capacity)` for an integer `capacity` of at least 0: the greatest total value of items whose
total weight is at most `capacity`; 0 if nothing fits."""
EXAMPLE = ([(2, 3), (3, 4)], 4), 6

def knapsack_repeated(items, capacity):
    best = [0] + [0] * capacity
    for weight, value in items:
        # wrong: for room in range(capacity, weight - 1, -1):
        for room in range(weight, capacity + 1):
            best[room] = max(best[room], best[room - weight] + value)
    return best[capacity]

"""`items` is a list of tuples (weight, value) of positive integers; each may be taken at most once. Define
`knapsack_exact(items, capacity)` for an integer `capacity` of at least 0: the greatest total value of items whose total
weight is exactly `capacity`; 0 if `capacity` is 0, `None` if no choice weighs exactly `capacity`."""
EXAMPLE = ([(2, 3), (3, 4)], 4), None
EDGES = [([(2, 3), (3, 4), (1, 5)], 3)]

def knapsack_exact(items, capacity):
    best = [0] + [float("-inf")] * capacity
    for weight, value in items:
        # wrong: for room in range(weight, capacity + 1):
        for room in range(capacity, weight - 1, -1):
            best[room] = max(best[room], best[room - weight] + value)
    return best[capacity] if best[capacity] >= 0 else None
