DRAW = lambda rng: (rng.randint(3, 30),)
EDGES = [(0,), (1,), (2,), (3,), (60,)]

"""Define `climb_by_1_or_2(n)`: the number of ways to climb `n` stairs in steps of 1 or 2 stairs, where the order of the
steps matters. There is one way to climb none. `n` is an integer from 0 to 60."""
EXAMPLE = (4,), 5

def climb_by_1_or_2(n):
    ways = [1]
    for i in range(1, n + 1):
        # wrong: ways.append(sum(ways[i - step] for step in (1, 2) if step < i))
        ways.append(sum(ways[i - step] for step in (1, 2) if step <= i))
    return ways[n]

"""Define `climb_by_1_3_5(n)`: the number of ways to climb `n` stairs in steps of 1, 3 or 5 stairs, where the order of
the steps matters. There is one way to climb none. `n` is an integer from 0 to 60."""
EXAMPLE = (5,), 5

def climb_by_1_3_5(n):
    ways = [1]
    for i in range(1, n + 1):
        # wrong: ways.append(sum(ways[i - step] for step in (1, 3, 5) if step < i))
        ways.append(sum(ways[i - step] for step in (1, 3, 5) if step <= i))
    return ways[n]

"""Define `write_as_2_and_3(n)`: the number of sequences of the numbers 2 and 3 with the sum `n`. The empty sequence has
the sum 0. `n` is an integer from 0 to 60."""
EXAMPLE = (5,), 2

def write_as_2_and_3(n):
    ways = [1]
    for i in range(1, n + 1):
        # wrong: ways.append(sum(ways[i - step] for step in (2, 3) if step < i))
        ways.append(sum(ways[i - step] for step in (2, 3) if step <= i))
    return ways[n]

"""Define `tile_in_two_colours(n)`: the number of ways to tile a strip of length `n` with tiles of length 1, which are
grey, and tiles of length 2, which are red or blue, where the order and the colours of the tiles matter. There is one
way to tile length 0. `n` is an integer from 0 to 60."""
EXAMPLE = (4,), 11

def tile_in_two_colours(n):
    ways = [1]
    for i in range(1, n + 1):
        # wrong: ways.append(sum(ways[i - step] for step in (1, 2, 2) if step < i))
        ways.append(sum(ways[i - step] for step in (1, 2, 2) if step <= i))
    return ways[n]
