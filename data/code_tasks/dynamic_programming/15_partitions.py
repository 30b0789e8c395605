DRAW = lambda rng: (rng.randint(3, 35),)

"""Define `count_partitions(n)` for a non-negative integer `n`: the number of ways to write `n` as a sum of positive
integers, where the order of the summands does not matter. There is one way to write 0, the empty sum."""
EXAMPLE = (4,), 5

def count_partitions(n):
    ways = [1] + [0] * n
    # wrong: for part in range(1, n):
    for part in range(1, n + 1):
        for total in range(part, n + 1):
            ways[total] += ways[total - part]
    return ways[n]

"""Define `count_distinct_partitions(n)` for a non-negative integer `n`: the number of ways to write `n` as a sum of
different positive integers, where the order of the summands does not matter. There is one way to write 0, the empty
sum."""
EXAMPLE = (6,), 4

def count_distinct_partitions(n):
    ways = [1] + [0] * n
    # wrong: for part in range(1, n):
    for part in range(1, n + 1):
        for total in range(n, part - 1, -1):
            ways[total] += ways[total - part]
    return ways[n]

"""Define `count_odd_partitions(n)` for a non-negative integer `n`: the number of ways to write `n` as a sum of odd
positive integers, where the order of the summands does not matter. There is one way to write 0, the empty sum."""
EXAMPLE = (6,), 4

def count_odd_partitions(n):
    ways = [1] + [0] * n
    # wrong: for part in range(3, n + 1, 2):
    for part in range(1, n + 1, 2):
        for total in range(part, n + 1):
            ways[total] += ways[total - part]
    return ways[n]

"""Define `count_small_partitions(n, largest)` for a non-negative integer `n` and a positive integer `largest`: the
number of ways to write `n` as a sum of positive integers of at most `largest`, where the order of the summands does not
matter. There is one way to write 0, the empty sum."""
EXAMPLE = (5, 2), 3
EDGES = [(0, 3), (3, 1), (3, 9), (10, 3)]
DRAW = lambda rng: (rng.randint(3, 25), rng.randint(1, 8))

def count_small_partitions(n, largest):
    ways = [1] + [0] * n
    # wrong: for part in range(1, largest):
    for part in range(1, largest + 1):
        for total in range(part, n + 1):
            ways[total] += ways[total - part]
    return ways[n]
