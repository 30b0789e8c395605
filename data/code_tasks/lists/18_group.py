DRAW = lambda rng: (integers(rng, -6, 12, 3, 8),)
EDGES = [([],)]

"""Define `group_by_remainder(numbers)`: a dictionary that maps each remainder of the numbers on division by 3 (0, 1 or
2, also for negative numbers) to the list of the numbers that have it, in their order; the empty list gives `{}`."""
EXAMPLE = ([4, 1, 7],), {1: [4, 1, 7]}
EDGES = [([-1, -2],)]

def group_by_remainder(numbers):
    result = {}
    for item in numbers:
        # wrong: result.setdefault(abs(item) % 3, []).append(item)
        result.setdefault(item % 3, []).append(item)
    return result

"""Define `group_by_length(words)`: a dictionary that maps each length of the words to the alphabetical list of the
different words of that length; the empty list gives `{}`."""
EXAMPLE = (["b", "aa", "a"],), {1: ["a", "b"], 2: ["aa"]}
EDGES = [(["a", "a"],), ([""],)]
DRAW = lambda rng: (["a" * rng.randint(1, 3) + rng.choice("bc") for _ in range(rng.randint(2, 6))],)

def group_by_length(words):
    result = {}
    for item in sorted(words):
        # wrong (3 lines): result.setdefault(len(item), []).append(item)
        group = result.setdefault(len(item), [])
        if item not in group:
            group.append(item)
    return result

"""Define `count_and_first(numbers)`: a dictionary that maps each number to the tuple (how often it occurs, position
from 0 of its first occurrence); the empty list gives `{}`."""
EXAMPLE = ([4, 1, 4],), {4: (2, 0), 1: (1, 1)}
EDGES = [([0, 0],)]
DRAW = lambda rng: (integers(rng, 0, 4, 3, 8),)

def count_and_first(numbers):
    result = {}
    for item in numbers:
        # wrong: result[item] = (numbers.count(item), len(numbers) - 1 - numbers[::-1].index(item))
        result[item] = (numbers.count(item), numbers.index(item))
    return result
