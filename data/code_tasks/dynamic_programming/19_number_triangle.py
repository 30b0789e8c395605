DRAW = lambda rng: ([[rng.randint(-4, 9) for _ in range(i)] for i in range(1, rng.randint(3, 6))],)
EDGES = [([[5]],), ([[-1], [-2, -3]],), ([[1], [4, 2], [0, 0, 9]],)]

"""`rows` is a non-empty list of rows with 1, 2, 3, ... integers. A path starts at the single number of the first row
and goes from position i of a row to position i or i + 1 of the next, down to the last row. Define
`greatest_triangle_path(rows)`: the greatest sum of the numbers on a path."""
EXAMPLE = ([[1], [2, 3], [9, 1, 1]],), 12

def greatest_triangle_path(rows):
    best = [number for number in rows[-1]]
    for row in rows[-2::-1]:
        # wrong: best = [number + a if row.index(number) == 0 else number + b for number, a, b in zip(row, best, best[1:])]
        best = [number + max(a, b) for number, a, b in zip(row, best, best[1:])]
    return best[0]

"""`rows` is a non-empty list of rows with 1, 2, 3, ... integers. A path starts at the single number of the first row
and goes from position i of a row to position i or i + 1 of the next, down to the last row. Define
`least_triangle_path(rows)`: the least sum of the numbers on a path."""
EXAMPLE = ([[1], [2, 3], [9, 1, 1]],), 4

def least_triangle_path(rows):
    best = [number for number in rows[-1]]
    for row in rows[-2::-1]:
        # wrong: best = [number + a for number, a, b in zip(row, best, best[1:])]
        best = [number + min(a, b) for number, a, b in zip(row, best, best[1:])]
    return best[0]

"""`rows` is a non-empty list of rows with 1, 2, 3, ... integers. A path starts at the single number of the first row
and goes from position i of a row to position i or i + 1 of the next, down to the last row. Define
`best_triangle_minimum(rows)`: the greatest number m such that some path has no number less than m."""
EXAMPLE = ([[1], [2, 3], [9, 1, 1]],), 1

def best_triangle_minimum(rows):
    best = [number for number in rows[-1]]
    for row in rows[-2::-1]:
        # wrong: best = [min(number, a, b) for number, a, b in zip(row, best, best[1:])]
        best = [min(number, max(a, b)) for number, a, b in zip(row, best, best[1:])]
    return best[0]
