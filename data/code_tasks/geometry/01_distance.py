DRAW = lambda rng: (point(rng), point(rng))
EDGES = [((2, 3), (2, 3)), ((0, 0), (5, 0)), ((-1, -1), (-3, -3)), ((1, 2), (0, 4))]

"""Points are tuples (x, y) of integers. Define `taxi_distance(first, second)`: the least number of steps of length 1 to
the left, right, up or down that lead from one point to the other."""
EXAMPLE = ((0, 0), (3, -4)), 7

def taxi_distance(first, second):
    dx, dy = second[0] - first[0], second[1] - first[1]
    # wrong: return abs(dx + dy)
    return abs(dx) + abs(dy)

"""Points are tuples (x, y) of integers. Define `king_distance(first, second)`: the least number of moves of a chess
king (one step in any of the eight directions) from one point to the other."""
EXAMPLE = ((0, 0), (3, -4)), 4

def king_distance(first, second):
    dx, dy = second[0] - first[0], second[1] - first[1]
    # wrong: return max(dx, dy)
    return max(abs(dx), abs(dy))

"""Points are tuples (x, y) of integers. Define `squared_distance(first, second)`: the square of their straight-line
distance, as an integer."""
EXAMPLE = ((0, 0), (3, -4)), 25

def squared_distance(first, second):
    dx, dy = second[0] - first[0], second[1] - first[1]
    # wrong: return (dx + dy) ** 2
    return dx * dx + dy * dy

"""Points are tuples (x, y) of integers. Define `points_between(first, second)`: the number of points with integer
coordinates on the straight segment between them, both ends excluded; 0 if the two points are the same."""
EXAMPLE = ((0, 0), (3, -4)), 0
EDGES = [((0, 0), (4, 6)), ((1, 1), (-3, 1))]

# wrong (3 lines):
from math import gcd


def points_between(first, second):
    dx, dy = second[0] - first[0], second[1] - first[1]
    # wrong: return max(max(abs(dx), abs(dy)) - 1, 0)
    return max(gcd(dx, dy) - 1, 0)
