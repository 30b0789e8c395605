DRAW = lambda rng: (integers(rng, -2, 3, 3, 8),)
EDGES = [([],), ([0],), ([1],), ([0, 0],), ([1, -1, 1],)]

"""Define `balance_position(numbers)`: the smallest position (from 0) such that the numbers before it and the numbers
behind it have the same sum (the sum of no numbers is 0), or -1 if there is none."""
EXAMPLE = ([1, 2, 3, 3],), 2

def balance_position(numbers):
    # wrong: found = [i for i in range(len(numbers)) if sum(numbers[:i]) == sum(numbers[i:])]
    found = [i for i in range(len(numbers)) if sum(numbers[:i]) == sum(numbers[i + 1 :])]
    return found[0] if found else -1

"""Define `count_even_splits(numbers)`: in how many ways the list can be cut into two non-empty parts, left and right,
with the same sum."""
EXAMPLE = ([1, 2, 3],), 1

def count_even_splits(numbers):
    # wrong: found = [i for i in range(1, len(numbers)) if sum(numbers[:i]) == sum(numbers[i + 1 :])]
    found = [i for i in range(1, len(numbers)) if sum(numbers[:i]) == sum(numbers[i:])]
    return len(found)

"""Define `fixed_positions(numbers)`: the ascending list of the positions, counted from 0, whose number equals the
position."""
EXAMPLE = ([3, 1, 0, 3],), [1, 3]
EDGES = [([0, 2, 1],)]
DRAW = lambda rng: (integers(rng, 0, 5, 4, 8),)

def fixed_positions(numbers):
    # wrong: found = [i for i in range(len(numbers)) if numbers[i] == i + 1]
    found = [i for i in range(len(numbers)) if numbers[i] == i]
    return found
