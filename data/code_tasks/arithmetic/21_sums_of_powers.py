DRAW = lambda rng: (rng.randint(0, 7) ** 2 + rng.randint(0, 8) ** 2,)
EDGES = [(0,), (1,), (2,), (3,), (65,)]

"""Define `sums_of_two_squares(n)` for a non-negative integer `n`: the list of the tuples (a, b) of positive integers a
<= b with a*a + b*b == `n`, in ascending order; `[]` if there are none."""
EXAMPLE = (50,), [(1, 7), (5, 5)]

def sums_of_two_squares(n):
    found = []
    for a in range(1, n + 1):
        # wrong: for b in range(a + 1, n + 1):
        for b in range(a, n + 1):
            if a * a + b * b == n:
                found.append((a, b))
    return found

"""Define `grid_points_at_distance(n)` for a non-negative integer `n`: the list of the tuples (a, b) of non-negative
integers with a*a + b*b == `n`, in ascending order; `[]` if there are none."""
EXAMPLE = (25,), [(0, 5), (3, 4), (4, 3), (5, 0)]

def grid_points_at_distance(n):
    found = []
    for a in range(0, n + 1):
        # wrong: for b in range(a, n + 1):
        for b in range(0, n + 1):
            if a * a + b * b == n:
                found.append((a, b))
    return found
