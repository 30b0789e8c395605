DRAW = lambda rng: (matrix(rng, rng.randint(1, 4), rng.randint(1, 4), -2, 6),)
EDGES = [([[4]],), ([[1, 2, 3], [1, 2, 3]],), ([[0, 0], [0, 0]],)]

"""`matrix` is a non-empty list of rows, each a non-empty list of integers of the same length. Define
`row_of_largest_sum(matrix)`: the number (from 0) of the row with the greatest sum, the first one if several tie."""
EXAMPLE = ([[1, 2], [3, 0]],), 0
EDGES = [([[1], [1]],)]

def row_of_largest_sum(matrix):
    # wrong: return max(range(len(matrix)), key=lambda i: (sum(matrix[i]), i))
    return max(range(len(matrix)), key=lambda i: (sum(matrix[i]), -i))

"""`matrix` is a non-empty list of rows, each a non-empty list of integers of the same length. Define
`column_maxima(matrix)`: the list of the greatest entries of its columns, from left to right."""
EXAMPLE = ([[1, 2], [3, 0]],), [3, 2]

def column_maxima(matrix):
    # wrong (2 lines): return [max(row) for row in matrix]
    columns = list(zip(*matrix))
    return [max(column) for column in columns]

"""`matrix` is a non-empty list of rows, each a non-empty list of integers of the same length. Define
`saddle_points(matrix)`: the ascending list of the tuples (row, column), counted from 0, of the entries that are least
(ties allowed) in their row and greatest (ties allowed) in their column; `[]` if there are none."""
EXAMPLE = ([[1, 2], [0, 3]],), [(0, 0)]
EDGES = [([[1, 1], [1, 1]],), ([[1, 2, 0], [0, 3, 1]],)]

def saddle_points(matrix):
    columns = list(zip(*matrix))
    # wrong: return [(i, j) for i, row in enumerate(matrix) for j, n in enumerate(row) if n == max(row) == min(columns[j])]
    return [(i, j) for i, row in enumerate(matrix) for j, n in enumerate(row) if n == min(row) == max(columns[j])]

"""`matrix` is a non-empty list of rows, each a non-empty list of integers of the same length. Define
`is_symmetric(matrix)`: `True` if it is square and every entry equals the one with row and column exchanged, else
`False`."""
EXAMPLE = ([[1, 2], [2, 0]],), True
EDGES = [([[1, 2, 3], [2, 5, 6]],), ([[0, 1], [2, 0]],), ([[1, 2]],)]
DRAW = lambda rng: (lambda a, b, c, d: ([[a, b, c], [b, c, d], [c, rng.choice([d, d, a]), 1]],))(
    *integers(rng, 0, 3, 4, 4)
)

def is_symmetric(matrix):
    columns = list(zip(*matrix))
    # wrong: return all(a == b for row, column in zip(matrix, columns) for a, b in zip(row, column))
    return matrix == [list(column) for column in columns]
