DRAW = lambda rng: (matrix(rng, rng.randint(2, 4), rng.randint(2, 4), 0, 9),)
EDGES = [([[0]],), ([[0, 1]],), ([[0], [0]],), ([[0, 0, 0], [0, 0, 0]],)]

"""`grid` is a non-empty list of rows, each a non-empty list of the same length, of non-negative integers. A walk starts
in the top left cell, ends in the bottom right one and goes one cell right or one cell down in each step. Define
`cheapest_walk(grid)`: the least possible sum of the cells on a walk, both ends included."""
EXAMPLE = ([[1, 9], [2, 3]],), 6

def cheapest_walk(grid):
    best = {}
    for i, row in enumerate(grid):
        for j, cell in enumerate(row):
            # wrong: before = [best[cell] for cell in ((i - 1, j), (i, j - 1), (i - 1, j - 1)) if cell in best]
            before = [best[cell] for cell in ((i - 1, j), (i, j - 1)) if cell in best]
            best[i, j] = cell if i == j == 0 else cell + min(before)
    return best[len(grid) - 1, len(grid[0]) - 1]

"""`grid` is a non-empty list of rows, each a non-empty list of the same length, of non-negative integers. A walk starts
in the top left cell, ends in the bottom right one and goes one cell right, one cell down or diagonally one cell right
and down in each step. Define `cheapest_diagonal_walk(grid)`: the least possible sum of the cells on a walk, both ends
included."""
EXAMPLE = ([[1, 9], [2, 3]],), 4

def cheapest_diagonal_walk(grid):
    best = {}
    for i, row in enumerate(grid):
        for j, cell in enumerate(row):
            # wrong: before = [best[cell] for cell in ((i - 1, j), (i, j - 1)) if cell in best]
            before = [best[cell] for cell in ((i - 1, j), (i, j - 1), (i - 1, j - 1)) if cell in best]
            best[i, j] = cell if i == j == 0 else cell + min(before)
    return best[len(grid) - 1, len(grid[0]) - 1]

"""`grid` is a non-empty list of rows, each a non-empty list of the same length, of 0 (free) and 1 (blocked). A walk
starts in the top left cell, ends in the bottom right one and goes one cell right or one cell down in each step. Define
`count_free_walks(grid)`: the number of different walks over free cells only, 0 if the first or the last cell is
blocked."""
EXAMPLE = ([[0, 0], [1, 0]],), 1
EDGES = [([[1]],), ([[0, 1], [1, 0]],), ([[0, 0, 0], [0, 1, 0], [0, 0, 0]],)]
DRAW = lambda rng: (blocked(rng, rng.randint(2, 4), 4, 0.15),)

def count_free_walks(grid):
    best = {}
    for i, row in enumerate(grid):
        for j, cell in enumerate(row):
            # wrong: before = [best[cell] for cell in ((i - 1, j), (i, j - 1), (i - 1, j - 1)) if cell in best]
            before = [best[cell] for cell in ((i - 1, j), (i, j - 1)) if cell in best]
            best[i, j] = 1 - cell if i == j == 0 else 0 if cell else sum(before)
    return best[len(grid) - 1, len(grid[0]) - 1]

"""`grid` is a non-empty list of rows, each a non-empty list of the same length, of integers. A walk starts in the top
left cell, ends in the bottom right one and goes one cell right or one cell down in each step. Define
`richest_walk(grid)`: the greatest possible sum of the cells on a walk, both ends included."""
EXAMPLE = ([[1, 9], [2, 3]],), 13
EDGES = [([[-1, -5], [-9, -2]],)]
DRAW = lambda rng: (matrix(rng, rng.randint(2, 4), rng.randint(2, 4), -9, 9),)

def richest_walk(grid):
    best = {}
    for i, row in enumerate(grid):
        for j, cell in enumerate(row):
            # wrong: before = [best[cell] for cell in ((i - 1, j), (i, j - 1), (i - 1, j - 1)) if cell in best]
            before = [best[cell] for cell in ((i - 1, j), (i, j - 1)) if cell in best]
            best[i, j] = cell if i == j == 0 else cell + max(before)
    return best[len(grid) - 1, len(grid[0]) - 1]
