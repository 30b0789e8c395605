DRAW = lambda rng: (["." + row[1:] if i == 0 else row for i, row in enumerate(maze(rng)[0])],)
EDGES = [(["."],), (["#"],), (["...", "##.", "..."],), (["..#", "#.."],), (["...", "...", "..."],)]

"""`grid` is a non-empty list of texts of equal positive length, in which `.` is free and `#` a wall. A walk goes over
free cells, in each step one cell up, down, left or right. Define `shortest_walk(grid)`: the least number of steps from
the top left to the bottom right cell, -1 if there is no such walk (or one of the two is a wall)."""
EXAMPLE = ([".#", ".."],), 2
EDGES = [([".#...", ".#.#.", "...#."],)]

from collections import deque


def shortest_walk(grid):
    rows, columns = len(grid), len(grid[0])
    steps = {(0, 0): 0} if grid[0][0] == "." else {}
    queue = deque(steps)
    while queue:
        i, j = queue.popleft()
        # wrong: for a, b in ((0, 1), (1, 0)):
        for a, b in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            k, m = i + a, j + b
            if 0 <= k < rows and 0 <= m < columns and grid[k][m] == "." and (k, m) not in steps:
                steps[k, m] = steps[i, j] + 1
                queue.append((k, m))
    return steps.get((rows - 1, columns - 1), -1)

"""`grid` is a non-empty list of texts of equal positive length, in which `.` is free and `#` a wall. A walk goes over
free cells, in each step to one of the eight neighbouring cells (also diagonally between two walls). Define
`shortest_walk_diagonal(grid)`: the least number of steps from the top left to the bottom right cell, -1 if there is no
such walk (or one of the two is a wall)."""
EXAMPLE = ([".#", ".."],), 1
EDGES = [([".#", "#."],)]

from collections import deque


def shortest_walk_diagonal(grid):
    rows, columns = len(grid), len(grid[0])
    steps = {(0, 0): 0} if grid[0][0] == "." else {}
    queue = deque(steps)
    while queue:
        i, j = queue.popleft()
        # wrong: for a, b in ((0, 1), (1, 0), (0, -1), (-1, 0)):
        for a, b in [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)]:
            k, m = i + a, j + b
            if 0 <= k < rows and 0 <= m < columns and grid[k][m] == "." and (k, m) not in steps:
                steps[k, m] = steps[i, j] + 1
                queue.append((k, m))
    return steps.get((rows - 1, columns - 1), -1)

"""`grid` is a non-empty list of texts of equal positive length, in which `.` is free and `#` a wall. A walk goes over
free cells, in each step one cell up, down, left or right. Define `count_reachable(grid)`: the number of cells that a
walk from the top left cell can reach, that cell included; 0 if it is a wall."""
EXAMPLE = ([".#", ".."],), 3
EDGES = [([".#...", ".#.#.", "...#."],)]

from collections import deque


def count_reachable(grid):
    rows, columns = len(grid), len(grid[0])
    steps = {(0, 0): 0} if grid[0][0] == "." else {}
    queue = deque(steps)
    while queue:
        i, j = queue.popleft()
        # wrong: for a, b in ((0, 1), (1, 0)):
        for a, b in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            k, m = i + a, j + b
            if 0 <= k < rows and 0 <= m < columns and grid[k][m] == "." and (k, m) not in steps:
                steps[k, m] = steps[i, j] + 1
                queue.append((k, m))
    return len(steps)

"""`grid` is a non-empty list of texts of equal positive length, in which `.` is free and `#` a wall. A walk goes over
free cells, in each step like a knight in chess (two cells in one direction and one at a right angle to it, over walls
if need be), ending on a free cell. Define `reachable_by_knight(grid)`: the number of free cells other than the top left
one that a walk from the top left cell can reach; 0 if that one is a wall."""
EXAMPLE = ([".#.", "..."],), 1

from collections import deque


def reachable_by_knight(grid):
    rows, columns = len(grid), len(grid[0])
    steps = {(0, 0): 0} if grid[0][0] == "." else {}
    queue = deque(steps)
    while queue:
        i, j = queue.popleft()
        # wrong: for a, b in [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)]:
        for a, b in [(a, b) for a in (-2, -1, 1, 2) for b in (-2, -1, 1, 2) if abs(a) != abs(b)]:
            k, m = i + a, j + b
            if 0 <= k < rows and 0 <= m < columns and grid[k][m] == "." and (k, m) not in steps:
                steps[k, m] = steps[i, j] + 1
                queue.append((k, m))
    return len(steps) - 1 if steps else 0
