DRAW = lambda rng: (
    rng.choice(
        [
            rng.randint(2, 400),
            rng.randint(2, 30) ** 2,
            rng.randint(2, 9) ** 3,
            rng.randint(10**8, 10**9) ** 2 + rng.randint(-1, 1),
        ]
    ),
)
EDGES = [(0,), (1,), (4,), (27,), (26,)]

"""Define `floor_square_root(n)` for a non-negative integer `n`, possibly greater than 10**20: the greatest integer
whose square is at most `n`."""
EXAMPLE = (10,), 3
EDGES = [((10**15 + 1) ** 2 - 1,)]

def floor_square_root(n):
    low, high = 0, n + 1
    while high - low > 1:
        middle = (low + high) // 2
        if middle**2 <= n:
            low = middle
        else:
            high = middle
    # wrong: return int(n**0.5)
    return low

"""Define `ceiling_square_root(n)` for a non-negative integer `n`, possibly greater than 10**20: the least non-negative
integer whose square is at least `n`."""
EXAMPLE = (10,), 4

def ceiling_square_root(n):
    low, high = 0, n + 1
    while high - low > 1:
        middle = (low + high) // 2
        if middle**2 <= n:
            low = middle
        else:
            high = middle
    # wrong: return low + 1
    return low + (low**2 < n)

"""Define `floor_cube_root(n)` for a non-negative integer `n`, possibly greater than 10**20: the greatest integer whose
cube is at most `n`."""
EXAMPLE = (30,), 3
EDGES = [(64,), (125,)]

def floor_cube_root(n):
    low, high = 0, n + 1
    while high - low > 1:
        middle = (low + high) // 2
        if middle**3 <= n:
            low = middle
        else:
            high = middle
    # wrong: return int(n ** (1 / 3))
    return low

"""Define `nearest_square_root(n)` for a non-negative integer `n`, possibly greater than 10**20: the non-negative
integer whose square is nearest to `n` (two are never equally near)."""
EXAMPLE = (12,), 3

def nearest_square_root(n):
    low, high = 0, n + 1
    while high - low > 1:
        middle = (low + high) // 2
        if middle**2 <= n:
            low = middle
        else:
            high = middle
    # wrong: return low
    return low + ((low + 1) ** 2 - n < n - low**2)
