DRAW = lambda rng: (matrix(rng, rng.randint(1, 3), rng.randint(1, 4)),)
EDGES = [([[1]],), ([[1, 2, 3]],), ([[1], [2]],)]

"""`matrix` is a non-empty list of rows, each a non-empty list of the same length. Define `transpose(matrix)`: the
matrix, as a new list of lists, transposed: rows become columns."""
EXAMPLE = ([[1, 2], [3, 4]],), [[1, 3], [2, 4]]

def transpose(matrix):
    # wrong: return [list(row) for row in zip(*matrix[::-1])]
    return [list(row) for row in zip(*matrix)]

"""`matrix` is a non-empty list of rows, each a non-empty list of the same length. Define `turn_clockwise(matrix)`: the
matrix, as a new list of lists, turned clockwise by 90 degrees."""
EXAMPLE = ([[1, 2], [3, 4]],), [[3, 1], [4, 2]]

def turn_clockwise(matrix):
    # wrong: return [list(row) for row in list(zip(*matrix))[::-1]]
    return [list(row) for row in zip(*matrix[::-1])]

"""`matrix` is a non-empty list of rows, each a non-empty list of the same length. Define
`turn_counterclockwise(matrix)`: the matrix, as a new list of lists, turned counterclockwise by 90 degrees."""
EXAMPLE = ([[1, 2], [3, 4]],), [[2, 4], [1, 3]]

def turn_counterclockwise(matrix):
    # wrong: return [list(row) for row in zip(*matrix[::-1])]
    return [list(row) for row in list(zip(*matrix))[::-1]]

"""`matrix` is a non-empty list of rows, each a non-empty list of the same length. Define `turn_half(matrix)`: the
matrix, as a new list of lists, turned by 180 degrees."""
EXAMPLE = ([[1, 2], [3, 4]],), [[4, 3], [2, 1]]

def turn_half(matrix):
    # wrong: return [list(row) for row in matrix[::-1]]
    return [list(row) for row in [row[::-1] for row in matrix[::-1]]]
