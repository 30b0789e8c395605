DRAW = lambda rng: (rng.randint(1, 60),)

"""There are `count` stones (at least 0). Two players in turn take 1, 3 or 4 of them; whoever cannot move loses. Both
players play as well as possible. Define `first_wins_stones(count)`: `True` if the player who moves first wins, else
`False`."""
EXAMPLE = (6,), True
EDGES = [(0,), (1,), (2,), (7,), (9,)]

def first_wins_stones(count):
    # wrong (4 lines): return count % 4 != 0
    wins = []
    for stones in range(count + 1):
        wins.append(any(not wins[stones - take] for take in (1, 3, 4) if take <= stones))
    return wins[count]

"""The positive integers in the list `coins` lie in a row. Two players in turn take the first or the last coin that is
left, until none is. Both players play as well as possible. Define `pick_from_ends(coins)`: the total of the player who
moves first, who wants to get as much as possible, as does the other; 0 if there are no coins."""
EXAMPLE = ([3, 9, 1],), 4
EDGES = [([],), ([4],), ([1, 5],)]
DRAW = lambda rng: (integers(rng, 1, 12, 3, 8),)

def pick_from_ends(coins):
    # wrong (7 lines): return max(sum(coins[::2]), sum(coins[1::2]))
    size = len(coins)
    best = {(i, i): 0 for i in range(size + 1)}
    for width in range(1, size + 1):
        for i in range(size - width + 1):
            j = i + width
            best[i, j] = sum(coins[i:j]) - min(best[i + 1, j], best[i, j - 1])
    return best[0, size]

"""There are two heaps of `a` and `b` stones (at least 0 each). Two players in turn take one stone from one heap or one
stone from each heap; whoever cannot move loses. Both players play as well as possible. Define `first_wins_two_heaps(a,
b)`: `True` if the player who moves first wins, else `False`."""
EXAMPLE = (4, 2), False
EDGES = [(0, 0), (1, 0), (1, 1), (2, 2)]
DRAW = lambda rng: (rng.randint(0, 12), rng.randint(0, 12))

def first_wins_two_heaps(a, b):
    # wrong (6 lines): return a != b
    wins = {}
    for i in range(a + 1):
        for j in range(b + 1):
            moves = ((i - 1, j), (i, j - 1), (i - 1, j - 1))
            wins[i, j] = any(not wins[move] for move in moves if move in wins)
    return wins[a, b]
