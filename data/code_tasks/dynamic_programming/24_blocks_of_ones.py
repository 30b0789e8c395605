DRAW = lambda rng: (blocked(rng, rng.randint(2, 4), rng.randint(2, 5), 0.75),)
EDGES = [([],), ([[0]],), ([[1]],), ([[1, 1, 1], [1, 1, 1], [1, 1, 1]],), ([[0, 0], [0, 1]],)]

"""`grid` is a list of rows of equal length, of the integers 0 and 1. Define `largest_square_area(grid)`: the area
(number of cells) of the largest square of neighbouring cells that all hold 1, 0 if there is none."""
EXAMPLE = ([[1, 1], [1, 1], [0, 1]],), 4

def largest_square_area(grid):
    sizes = {}
    for i, row in enumerate(grid):
        for j, cell in enumerate(row):
            near = [sizes.get(place, 0) for place in ((i - 1, j), (i, j - 1), (i - 1, j - 1))]
            sizes[i, j] = 1 + min(near) if cell == 1 else 0
    # wrong: return max(sizes.values(), default=0)
    return max(sizes.values(), default=0) ** 2

"""`grid` is a list of rows of equal length, of the integers 0 and 1. Define `count_squares(grid)`: the number of
squares, of any size from 1 by 1, of neighbouring cells that all hold 1, 0 if there is none."""
EXAMPLE = ([[1, 1], [1, 1], [0, 1]],), 6

def count_squares(grid):
    sizes = {}
    for i, row in enumerate(grid):
        for j, cell in enumerate(row):
            near = [sizes.get(place, 0) for place in ((i - 1, j), (i, j - 1), (i - 1, j - 1))]
            sizes[i, j] = 1 + min(near) if cell == 1 else 0
    # wrong: return sum(size > 0 for size in sizes.values())
    return sum(sizes.values())

"""`grid` is a list of rows of equal length, of the integers 0 and 1. Define `largest_zero_square_side(grid)`: the side
length of the largest square of neighbouring cells that all hold 0, 0 if there is none."""
EXAMPLE = ([[0, 0], [0, 0], [1, 0]],), 2
EDGES = [([[0, 0, 0], [0, 0, 0], [0, 0, 0]],)]
DRAW = lambda rng: (blocked(rng, rng.randint(2, 4), rng.randint(2, 5), 0.2),)

def largest_zero_square_side(grid):
    sizes = {}
    for i, row in enumerate(grid):
        for j, cell in enumerate(row):
            near = [sizes.get(place, 0) for place in ((i - 1, j), (i, j - 1), (i - 1, j - 1))]
            sizes[i, j] = 1 + min(near) if cell == 0 else 0
    # wrong: return max(sizes.values(), default=0) ** 2
    return max(sizes.values(), default=0)
