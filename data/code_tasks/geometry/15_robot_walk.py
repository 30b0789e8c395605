DRAW = lambda rng: ("".join(rng.choice("FFFLR") for _ in range(rng.randint(4, 16))),)
EDGES = [("",), ("LR",), ("F",), ("FLFLFLF",)]

"""A robot starts at (0, 0) and looks upwards, the direction in which y grows (x grows to the right). In the text
`moves`, L and R turn it by 90 degrees to its left or right, and F moves it ahead by 1. Define `robot_position(moves)`:
the tuple (x, y) of its position at the end."""
EXAMPLE = ("FRFF",), (2, 1)

def robot_position(moves):
    x, y, dx, dy = 0, 0, 0, 1
    visited = [(0, 0)]
    for move in moves:
        if move == "L":
            dx, dy = -dy, dx
        elif move == "R":
            dx, dy = dy, -dx
        else:
            x, y = x + dx, y + dy
            visited.append((x, y))
    # wrong: return (-x, y)
    return (x, y)

"""A robot starts at (0, 0) and looks upwards, the direction in which y grows (x grows to the right). In the text
`moves`, L and R turn it by 90 degrees to its left or right, and F moves it ahead by 1. Define
`robot_count_places(moves)`: the number of different points on which it has stood, the start included."""
EXAMPLE = ("FRFRFRF",), 4

def robot_count_places(moves):
    x, y, dx, dy = 0, 0, 0, 1
    visited = [(0, 0)]
    for move in moves:
        if move == "L":
            dx, dy = -dy, dx
        elif move == "R":
            dx, dy = dy, -dx
        else:
            x, y = x + dx, y + dy
            visited.append((x, y))
    # wrong: return len(visited)
    return len(set(visited))

"""A robot starts at (0, 0) and looks upwards, the direction in which y grows (x grows to the right). In the text
`moves`, L and R turn it by 90 degrees to its left or right, and F moves it ahead by 1. Define
`robot_first_repeat(moves)`: the tuple (x, y) of the first point that it reaches by a move F although it has stood there
before (at the start or later), or `None` if there is none."""
EXAMPLE = ("FRFRFRFF",), (0, 0)
EDGES = [("FLLF",), ("FFLLFF",)]

def robot_first_repeat(moves):
    x, y, dx, dy = 0, 0, 0, 1
    visited = [(0, 0)]
    for move in moves:
        if move == "L":
            dx, dy = -dy, dx
        elif move == "R":
            dx, dy = dy, -dx
        else:
            x, y = x + dx, y + dy
            visited.append((x, y))
    # wrong: return next((p for p in visited if visited.count(p) > 1), None)
    return next((p for i, p in enumerate(visited) if p in visited[:i]), None)

"""A robot starts at (0, 0) and looks upwards, the direction in which y grows (x grows to the right). In the text
`moves`, L and R turn it by 90 degrees to its left or right, and F moves it ahead by 1. Define `robot_farthest(moves)`:
the greatest value of |x| + |y| among all points on which it has stood, the start included."""
EXAMPLE = ("FRFF",), 3
EDGES = [("FLLF",)]

def robot_farthest(moves):
    x, y, dx, dy = 0, 0, 0, 1
    visited = [(0, 0)]
    for move in moves:
        if move == "L":
            dx, dy = -dy, dx
        elif move == "R":
            dx, dy = dy, -dx
        else:
            x, y = x + dx, y + dy
            visited.append((x, y))
    # wrong: return abs(x) + abs(y)
    return max(abs(a) + abs(b) for a, b in visited)
