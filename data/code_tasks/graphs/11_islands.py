DRAW = maze
EDGES = [([],), (["."],), (["#"],), (["#.#", "###", "#.#"],), (["###", "..#", "###"],), ([".#.", "##.", "..#"],)]

"""`grid` is a list of texts of equal length, made of `.` and `#`. Two # belong to one island if steps up, down, left or
right over # lead from one to the other. Define `count_islands(grid)`: the number of islands, 0 if there is no #."""
EXAMPLE = ([".#", "#."],), 2

def count_islands(grid):
    rest = {(i, j) for i, row in enumerate(grid) for j, cell in enumerate(row) if cell == "#"}
    islands = []
    while rest:
        stack = [rest.pop()]
        island = set(stack)
        while stack:
            i, j = stack.pop()
            # wrong: steps = ((0, 1), (1, 0))
            steps = ((0, 1), (1, 0), (0, -1), (-1, 0))
            near = {(i + a, j + b) for a, b in steps} & rest
            rest -= near
            island |= near
            stack += near
        islands.append(island)
    return len(islands)

"""`grid` is a list of texts of equal length, made of `.` and `#`. Two # belong to one island if steps over # to any of
the eight neighbouring cells lead from one to the other. Define `count_islands_diagonal(grid)`: the number of islands, 0
if there is no #."""
EXAMPLE = ([".#", "#."],), 1

def count_islands_diagonal(grid):
    rest = {(i, j) for i, row in enumerate(grid) for j, cell in enumerate(row) if cell == "#"}
    islands = []
    while rest:
        stack = [rest.pop()]
        island = set(stack)
        while stack:
            i, j = stack.pop()
            # wrong: steps = ((0, 1), (1, 0), (0, -1), (-1, 0))
            steps = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)]
            near = {(i + a, j + b) for a, b in steps} & rest
            rest -= near
            island |= near
            stack += near
        islands.append(island)
    return len(islands)

"""`grid` is a list of texts of equal length, made of `.` and `#`. Two # belong to one island if steps up, down, left or
right over # lead from one to the other. Define `largest_island(grid)`: the number of # of the largest island, 0 if
there is no #."""
EXAMPLE = (["##", "#."],), 3

def largest_island(grid):
    rest = {(i, j) for i, row in enumerate(grid) for j, cell in enumerate(row) if cell == "#"}
    islands = []
    while rest:
        stack = [rest.pop()]
        island = set(stack)
        while stack:
            i, j = stack.pop()
            # wrong: steps = ((0, 1), (1, 0))
            steps = ((0, 1), (1, 0), (0, -1), (-1, 0))
            near = {(i + a, j + b) for a, b in steps} & rest
            rest -= near
            island |= near
            stack += near
        islands.append(island)
    return max(map(len, islands), default=0)

"""`grid` is a list of texts of equal length, made of `.` and `#`. Two `.` belong to one lake if steps up, down, left or
right over `.` lead from one to the other. Define `count_enclosed_lakes(grid)`: the number of lakes that have no cell in
the first or last row or the first or last column."""
EXAMPLE = (["###", "#.#", "###"],), 1
EDGES = [
    (["####", "#..#", "##.#", "####"],),
    (["#####", "#.#.#", "#####", "#..##"],),
    (["#####", "##..#", "#...#", "#####"],),
    (["###", "#.#", "#.#"],),
]
DRAW = lambda rng: (
    (lambda rows: ["#######", *rows, "#######"])(
        ["#" + "".join(rng.choice("..##.") for _ in range(5)) + rng.choice("##.") for _ in range(rng.randint(2, 4))]
    ),
)

def count_enclosed_lakes(grid):
    rest = {(i, j) for i, row in enumerate(grid) for j, cell in enumerate(row) if cell == "."}
    islands = []
    while rest:
        stack = [rest.pop()]
        island = set(stack)
        while stack:
            i, j = stack.pop()
            # wrong: steps = ((0, 1), (1, 0), (0, -1))
            steps = ((0, 1), (1, 0), (0, -1), (-1, 0))
            near = {(i + a, j + b) for a, b in steps} & rest
            rest -= near
            island |= near
            stack += near
        islands.append(island)
    return sum(all(0 < i < len(grid) - 1 and 0 < j < len(grid[0]) - 1 for i, j in island) for island in islands)
