DRAW = lambda rng: (integers(rng, 0, 6, 5, 11),)
EDGES = [([],), ([7],), ([2, 2, 2],), ([3, 2, 1],), ([1, 2, 3],)]

"""Define `longest_rise(numbers)`: the length of the longest stretch of neighbouring numbers in which each number after
the first is greater than the one before it. It is 0 for the empty list."""
EXAMPLE = ([1, 2, 2, 3],), 2

def longest_rise(numbers):
    best = length = start = 0
    for i, number in enumerate(numbers):
        # wrong: length = length + 1 if i > 0 and number >= numbers[i - 1] else 1
        length = length + 1 if i > 0 and number > numbers[i - 1] else 1
        if length > best:
            best, start = length, i - length + 1
    return best

"""Define `longest_non_fall(numbers)`: the length of the longest stretch of neighbouring numbers in which each number
after the first is greater than or equal to the one before it. It is 0 for the empty list."""
EXAMPLE = ([1, 2, 2, 3],), 4

def longest_non_fall(numbers):
    best = length = start = 0
    for i, number in enumerate(numbers):
        # wrong: length = length + 1 if i > 0 and number > numbers[i - 1] else 1
        length = length + 1 if i > 0 and number >= numbers[i - 1] else 1
        if length > best:
            best, start = length, i - length + 1
    return best

"""Define `first_longest_fall(numbers)`: the longest stretch (a list; the leftmost one if several tie) of neighbouring
numbers in which each number after the first is less than the one before it. It is `[]` for the empty list."""
EXAMPLE = ([4, 3, 3, 5, 2],), [4, 3]

def first_longest_fall(numbers):
    best = length = start = 0
    for i, number in enumerate(numbers):
        # wrong: length = length + 1 if i > 0 and number <= numbers[i - 1] else 1
        length = length + 1 if i > 0 and number < numbers[i - 1] else 1
        if length > best:
            best, start = length, i - length + 1
    return numbers[start : start + best]

"""Define `start_of_longest_non_rise(numbers)`: the position (from 0) at which the longest stretch starts (the leftmost
one if several tie) that consists of neighbouring numbers in which each number after the first is less than or equal to
the one before it. It is `None` for the empty list."""
EXAMPLE = ([4, 3, 3, 5],), 0

def start_of_longest_non_rise(numbers):
    best = length = start = 0
    for i, number in enumerate(numbers):
        # wrong: length = length + 1 if i > 0 and number < numbers[i - 1] else 1
        length = length + 1 if i > 0 and number <= numbers[i - 1] else 1
        if length > best:
            best, start = length, i - length + 1
    return start if numbers else None
