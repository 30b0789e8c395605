DRAW = lambda rng: (integers(rng, 1, 15, 3, 6),)

"""Define `can_halve(numbers)` for a list of positive integers: `True` if some of its numbers have exactly half the sum
of all, else `False` (the empty list gives `True`). Each position of the list may be used at most once."""
EXAMPLE = ([3, 1, 2],), True
EDGES = [([2, 2, 1],), ([1, 5, 11, 5],)]

def can_halve(numbers):
    sums = {0}
    for number in numbers:
        sums |= {other + number for other in sums}
    total = sum(numbers)
    # wrong: return total // 2 in sums
    return total % 2 == 0 and total // 2 in sums

"""Define `least_split_difference(numbers)` for a list of positive integers: the least possible difference between the
sums of two groups, when each number is put into one of the two (a group may be empty). Each position of the list may be
used at most once."""
EXAMPLE = ([3, 1, 7],), 3

def least_split_difference(numbers):
    sums = {0}
    for number in numbers:
        sums |= {other + number for other in sums}
    total = sum(numbers)
    # wrong: return total % 2
    return min(abs(total - 2 * part) for part in sums)

"""Define `best_sum_below(numbers, limit)` for a list of positive integers: the greatest sum of some of its numbers that
is at most `limit` (an integer of at least 0), where the sum of no numbers is 0. Each position of the list may be used
at most once."""
EXAMPLE = ([3, 4, 8], 10), 8
EDGES = [([], 4), ([5], 5), ([5], 3), ([2, 3], 0)]
DRAW = lambda rng: (integers(rng, 2, 15, 3, 6), rng.randint(3, 30))

def best_sum_below(numbers, limit):
    sums = {0}
    for number in numbers:
        sums |= {other + number for other in sums}
    # wrong: return max(part for part in sums if part < limit or not part)
    return max(part for part in sums if part <= limit)

"""Define `least_missing_sum(numbers)` for a list of positive integers: the least positive integer that is not the sum
of some of its numbers. Each position of the list may be used at most once."""
EXAMPLE = ([1, 2, 5],), 4
DRAW = lambda rng: (integers(rng, 1, 5, 2, 6),)

def least_missing_sum(numbers):
    sums = {0}
    for number in numbers:
        sums |= {other + number for other in sums}
    total = sum(numbers)
    # wrong: return next(part for part in range(1, total + 2) if part not in numbers)
    return next(part for part in range(1, total + 2) if part not in sums)
