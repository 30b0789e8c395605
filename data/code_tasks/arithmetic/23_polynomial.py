DRAW = lambda rng: (integers(rng, -5, 5, 1, 5),)

"""A polynomial is a list of its integer coefficients, where the coefficient at index i belongs to x**i: `[5, 0, 2]` is
2x² + 5. Define `evaluate_polynomial(coefficients, x)`: its value at the integer `x`; the empty list is the polynomial
0."""
EXAMPLE = ([1, 0, 2], 3), 19
EDGES = [([], 2), ([7], 0), ([1, 1], -1)]
DRAW = lambda rng: (integers(rng, -5, 5, 1, 5), rng.randint(-4, 4))

def evaluate_polynomial(coefficients, x):
    # wrong: return sum(c * x**i for i, c in enumerate(coefficients[::-1]))
    return sum(c * x**i for i, c in enumerate(coefficients))

"""A polynomial is a list of its integer coefficients, where the coefficient at index i belongs to x**i: `[5, 0, 2]` is
2x² + 5. Define `differentiate_polynomial(coefficients)`: the coefficients of its derivative, one fewer than those given
(so `[]` for one coefficient or none)."""
EXAMPLE = ([1, 4, 3],), [4, 6]
EDGES = [([],), ([5],), ([0, 0, 1],)]

def differentiate_polynomial(coefficients):
    # wrong: return [i * c for i, c in enumerate(coefficients[1:])]
    return [i * c for i, c in enumerate(coefficients)][1:]

"""A polynomial is a list of its integer coefficients, where the coefficient at index i belongs to x**i: `[5, 0, 2]` is
2x² + 5. Define `multiply_polynomials(coefficients, others)`: the coefficients of the product with the polynomial
`others`, as many as the two lists have together minus 1; neither list is empty."""
EXAMPLE = ([1, 1], [1, -1]), [1, 0, -1]
EDGES = [([2], [3]), ([0], [1, 2])]
DRAW = lambda rng: (integers(rng, -4, 4, 1, 4), integers(rng, -4, 4, 1, 4))

def multiply_polynomials(coefficients, others):
    # wrong (5 lines): return [a * b for a, b in zip(coefficients, others)]
    result = [0] * (len(coefficients) + len(others) - 1)
    for i, a in enumerate(coefficients):
        for j, b in enumerate(others):
            result[i + j] += a * b
    return result
