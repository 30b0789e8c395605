DRAW = lambda rng: (matrix(rng, rng.randint(2, 4), rng.randint(2, 4)),)
EDGES = [([[1]],), ([[1, 2, 3]],), ([[1], [2]],), ([[1, 2, 3], [4, 5, 6]],)]

"""`matrix` is a non-empty list of rows, each a non-empty list of the same length. Define `read_diagonals(matrix)`: the
list of all its entries by antidiagonals: first the top left entry, then those whose row and column numbers add up to 1,
then 2 and so on (counted from 0), within each from the top row downwards."""
EXAMPLE = ([[1, 2], [3, 4]],), [1, 2, 3, 4]

def read_diagonals(matrix):
    cells = [(row, column) for row in range(len(matrix)) for column in range(len(matrix[0]))]
    # wrong: cells.sort(key=lambda cell: (cell[0] + cell[1], cell[1]))
    cells.sort(key=lambda cell: (cell[0] + cell[1], cell[0]))
    return [matrix[row][column] for row, column in cells]

"""`matrix` is a non-empty list of rows, each a non-empty list of the same length. Define `read_snake(matrix)`: the list
of all its entries row by row from the top, the first row from left to right, the second from right to left and so on in
turn."""
EXAMPLE = ([[1, 2], [3, 4]],), [1, 2, 4, 3]

def read_snake(matrix):
    cells = [(row, column) for row in range(len(matrix)) for column in range(len(matrix[0]))]
    # wrong: cells.sort(key=lambda cell: cell)
    cells.sort(key=lambda cell: (cell[0], cell[1] if cell[0] % 2 == 0 else -cell[1]))
    return [matrix[row][column] for row, column in cells]

"""`matrix` is a non-empty list of rows, each a non-empty list of the same length. Define
`read_columns_upwards(matrix)`: the list of all its entries column by column from the left, each column from the bottom
upwards."""
EXAMPLE = ([[1, 2], [3, 4]],), [3, 1, 4, 2]

def read_columns_upwards(matrix):
    cells = [(row, column) for row in range(len(matrix)) for column in range(len(matrix[0]))]
    # wrong: cells.sort(key=lambda cell: (cell[1], cell[0]))
    cells.sort(key=lambda cell: (cell[1], -cell[0]))
    return [matrix[row][column] for row, column in cells]

"""`matrix` is a non-empty list of rows, each a non-empty list of the same length. Define `read_main_diagonals(matrix)`:
the list of all its entries by diagonals that run down to the right: first the one in the top right corner, then the
next one below it and so on to the bottom left corner, each from its top row downwards."""
EXAMPLE = ([[1, 2, 3], [4, 5, 6], [7, 8, 9]],), [3, 2, 6, 1, 5, 9, 4, 8, 7]

def read_main_diagonals(matrix):
    cells = [(row, column) for row in range(len(matrix)) for column in range(len(matrix[0]))]
    # wrong: cells.sort(key=lambda cell: (cell[1] - cell[0], cell[0]))
    cells.sort(key=lambda cell: (cell[0] - cell[1], cell[0]))
    return [matrix[row][column] for row, column in cells]
