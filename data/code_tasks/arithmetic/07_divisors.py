DRAW = lambda rng: (rng.randint(2, 300),)
EDGES = [(1,), (6,), (7,), (36,), (16,)]

"""Define `list_divisors(n)` for a positive integer `n`: the ascending list of its positive divisors, 1 and `n`
included."""
EXAMPLE = (12,), [1, 2, 3, 4, 6, 12]

def list_divisors(n):
    divisors = [i for i in range(1, n + 1) if n % i == 0]
    # wrong: return sorted(divisors[: len(divisors) // 2] + [n // i for i in divisors[: len(divisors) // 2]])
    return divisors

"""Define `sum_proper_divisors(n)` for a positive integer `n`: the sum of its positive divisors other than `n`
itself."""
EXAMPLE = (12,), 16

def sum_proper_divisors(n):
    divisors = [i for i in range(1, n + 1) if n % i == 0]
    # wrong: return sum(divisors[1:-1]) + 1
    return sum(divisors[:-1])

"""Define `classify_by_divisors(n)` for a positive integer `n`: `"perfect"`, `"abundant"` or `"deficient"` as the sum of
its positive divisors other than `n` is equal to, greater than or less than `n`."""
EXAMPLE = (12,), "abundant"
EDGES = [(28,), (496,), (8,)]

def classify_by_divisors(n):
    divisors = [i for i in range(1, n + 1) if n % i == 0]
    # wrong: return ["deficient", "abundant"][sum(divisors) >= 2 * n]
    return ["deficient", "perfect", "abundant"][(sum(divisors) >= 2 * n) + (sum(divisors) > 2 * n)]

"""Define `closest_divisors(n)` for a positive integer `n`: the tuple (a, b) with a * b == `n` and a <= b whose
difference b - a is least."""
EXAMPLE = (12,), (3, 4)

def closest_divisors(n):
    divisors = [i for i in range(1, n + 1) if n % i == 0]
    # wrong: return (divisors[len(divisors) // 2 - 1], divisors[len(divisors) // 2])
    return (divisors[(len(divisors) - 1) // 2], divisors[len(divisors) // 2])
