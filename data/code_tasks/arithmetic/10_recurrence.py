DRAW = lambda rng: (rng.randint(3, 40),)
EDGES = [(1,), (10,), (60,)]

"""A sequence starts with 0, 1; every later term is the sum of the two before it. Define `fibonacci(n)`: its term number
`n`, counted from 0, where `n` is from 0 to 60."""
EXAMPLE = (6,), 8
EDGES = [(0,), (2,)]

def fibonacci(n):
    terms = [0, 1]
    while len(terms) <= n:
        terms.append(terms[-1] + terms[-2])
    # wrong: return terms[n - 1]
    return terms[n]

"""A sequence starts with 0, 0, 1; every later term is the sum of the three before it. Define `tribonacci(n)`: its term
number `n`, counted from 0, where `n` is from 0 to 60."""
EXAMPLE = (5,), 4
EDGES = [(0,), (2,)]

def tribonacci(n):
    terms = [0, 0, 1]
    while len(terms) <= n:
        terms.append(sum(terms[-3:]))
    # wrong: return terms[n - 1]
    return terms[n]

"""A sequence starts with 2, 1; every later term is the sum of the two before it. Define `lucas_sum(n)`: the sum of its
first `n` terms, where `n` is from 1 to 60."""
EXAMPLE = (5,), 17
EDGES = [(2,)]

def lucas_sum(n):
    terms = [2, 1]
    while len(terms) <= n:
        terms.append(terms[-1] + terms[-2])
    # wrong: return sum(terms[: max(n, 2)])
    return sum(terms[:n])

"""A sequence starts with 0, 1; every later term is the one before it plus twice the one before that. Define
`jacobsthal(n)`: its term number `n`, counted from 0, where `n` is from 0 to 60."""
EXAMPLE = (5,), 11
EDGES = [(0,), (2,)]

def jacobsthal(n):
    terms = [0, 1]
    while len(terms) <= n:
        terms.append(terms[-1] + 2 * terms[-2])
    # wrong: return terms[n - 1]
    return terms[n]
