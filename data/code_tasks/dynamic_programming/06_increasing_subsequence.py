import operator
from itertools import combinations

DRAW = lambda rng: (integers(rng, 0, 9, 5, 9),)
EDGES = [([],), ([4],), ([2, 2, 2],), ([3, 2, 1],), ([1, 2, 3],)]

def chains(numbers, compare):
    subsequences = [list(c) for size in range(len(numbers) + 1) for c in combinations(numbers, size)]
    return [c for c in subsequences if all(map(compare, c, c[1:]))]

"""A subsequence of a list is what remains after deleting any of its entries, the others keeping their order. Define
`longest_increasing(numbers)`: the length of the longest subsequence in which each number is greater than the one before
it; 0 for the empty list."""
EXAMPLE = ([3, 1, 2, 2],), 2
ORACLE = lambda numbers: max(map(len, chains(numbers, operator.lt)))

def longest_increasing(numbers):
    best = []
    for i, number in enumerate(numbers):
        # wrong: shorter = [best[j] for j in range(i) if numbers[j] <= number]
        shorter = [best[j] for j in range(i) if numbers[j] < number]
        best.append(max(shorter, key=len, default=[]) + [number])
    return max(map(len, best), default=0)

"""A subsequence of a list is what remains after deleting any of its entries, the others keeping their order. Define
`longest_non_decreasing(numbers)`: the length of the longest subsequence in which no number is less than the one before
it; 0 for the empty list."""
EXAMPLE = ([3, 1, 2, 2],), 3
ORACLE = lambda numbers: max(map(len, chains(numbers, operator.le)))

def longest_non_decreasing(numbers):
    best = []
    for i, number in enumerate(numbers):
        # wrong: shorter = [best[j] for j in range(i) if numbers[j] < number]
        shorter = [best[j] for j in range(i) if numbers[j] <= number]
        best.append(max(shorter, key=len, default=[]) + [number])
    return max(map(len, best), default=0)

"""A subsequence of a list is what remains after deleting any of its entries, the others keeping their order. Define
`heaviest_increasing(numbers)`: the greatest sum of a subsequence in which each number is greater than the one before
it; the numbers are non-negative, and the empty list gives 0."""
EXAMPLE = ([9, 1, 2, 9, 8],), 12
ORACLE = lambda numbers: max(map(sum, chains(numbers, operator.lt)))

def heaviest_increasing(numbers):
    best = []
    for i, number in enumerate(numbers):
        # wrong: shorter = [best[j] for j in range(i) if numbers[j] <= number]
        shorter = [best[j] for j in range(i) if numbers[j] < number]
        best.append(max(shorter, key=sum, default=[]) + [number])
    return max(map(sum, best), default=0)

"""A subsequence of a list is what remains after deleting any of its entries, the others keeping their order. Define
`smallest_longest_increasing(numbers)`: the longest subsequence in which each number is greater than the one before it,
as a list; if several tie, the lexicographically smallest one (compare the first numbers, then the second and so on);
`[]` for the empty list."""
EXAMPLE = ([3, 1, 4, 2],), [1, 2]
ORACLE = lambda numbers: min(chains(numbers, operator.lt), key=lambda chain: (-len(chain), chain))

def smallest_longest_increasing(numbers):
    best = []
    for i, number in enumerate(numbers):
        # wrong: shorter = [best[j] for j in range(i) if numbers[j] <= number]
        shorter = [best[j] for j in range(i) if numbers[j] < number]
        best.append(min(shorter, key=lambda chain: (-len(chain), chain), default=[]) + [number])
    return min(best, key=lambda chain: (-len(chain), chain), default=[])
