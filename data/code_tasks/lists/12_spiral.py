DRAW = lambda rng: (matrix(rng, rng.randint(2, 4), rng.randint(2, 4)),)
EDGES = [([],), ([[5]],), ([[1, 2, 3]],), ([[1, 2, 3], [4, 5, 6], [7, 8, 9]],)]

"""`matrix` is a list of rows, all of the same length. Define `spiral_clockwise(matrix)`: the list of its entries on a
spiral inwards that starts at the top left and goes right first, then down (clockwise). A matrix without entries gives
`[]`."""
EXAMPLE = ([[1, 2], [3, 4]],), [1, 2, 4, 3]

def spiral_clockwise(matrix):
    rows, result = [list(row) for row in matrix], []
    while rows:
        result += rows[0]
        # wrong: rows = [list(row) for row in zip(*rows[1:])]
        rows = [list(row) for row in zip(*rows[1:])][::-1]
    return result

"""`matrix` is a list of rows, all of the same length. Define `spiral_counterclockwise(matrix)`: the list of its entries
on a spiral inwards that starts at the top left and goes down first, then right (counterclockwise). A matrix without
entries gives `[]`."""
EXAMPLE = ([[1, 2], [3, 4]],), [1, 3, 4, 2]

def spiral_counterclockwise(matrix):
    rows, result = [list(row) for row in zip(*matrix)], []
    while rows:
        result += rows[0]
        # wrong: rows = [list(row) for row in zip(*rows[1:])]
        rows = [list(row) for row in zip(*rows[1:])][::-1]
    return result
