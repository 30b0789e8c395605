DRAW = lambda rng: (rng.randint(8, 70),)
EDGES = [(0,), (1,), (4,)]

"""Define `right_triangles(n)` for a non-negative integer `n`: the list of the tuples (a, b, c) with a*a + b*b == c*c
and a + b + c == `n`, in ascending order, with positive integers a < b < c."""
EXAMPLE = (12,), [(3, 4, 5)]
EDGES = [(60,), (84,)]
DRAW = lambda rng: (rng.randint(1, 11) * 12,)

def right_triangles(n):
    found = []
    for a in range(1, n + 1):
        # wrong: for b in range(a * 2, n + 1):
        for b in range(a, n + 1):
            c = n - a - b
            if c > b and a * a + b * b == c * c:
                found.append((a, b, c))
    return found

"""Define `count_integer_triangles(n)` for a non-negative integer `n`: the number of triangles (a, b, c) with a + b > c
and a + b + c == `n` with positive integers a <= b <= c."""
EXAMPLE = (12,), 3
EDGES = [(3,), (9,)]

def count_integer_triangles(n):
    found = []
    for a in range(1, n + 1):
        # wrong: for b in range(a + 1, n + 1):
        for b in range(a, n + 1):
            c = n - a - b
            if c >= b and a + b > c:
                found.append((a, b, c))
    return len(found)
