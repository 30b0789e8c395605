DRAW = lambda rng: (integers(rng, 0, 12, 1, 7),)
EDGES = [([],), ([4],), ([2, 2],), ([1, 2],), ([3, 3, 5, 5],)]

"""Define `second_largest_value(numbers)`: the greatest number that is less than the maximum of `numbers`. If there is
no such number, the result is `None`."""
EXAMPLE = ([5, 5, 3],), 3

def second_largest_value(numbers):
    # wrong: ordered = sorted(numbers)
    ordered = sorted(set(numbers))
    return ordered[-2] if len(ordered) > 1 else None

"""Define `third_smallest_value(numbers)`: the third smallest of the different values in `numbers`. If there is no such
number, the result is `None`."""
EXAMPLE = ([3, 1, 1, 2],), 3

def third_smallest_value(numbers):
    # wrong: ordered = sorted(numbers)
    ordered = sorted(set(numbers))
    return ordered[2] if len(ordered) > 2 else None

"""Define `lower_median(numbers)`: the median, that is the middle one of the sorted numbers (repetitions included), or
of the two middle ones the smaller. If there is no such number, the result is `None`."""
EXAMPLE = ([4, 1, 3, 2],), 2
EDGES = [([1, 1, 1, 2, 3],)]

def lower_median(numbers):
    # wrong: ordered = sorted(set(numbers))
    ordered = sorted(numbers)
    return ordered[(len(ordered) - 1) // 2] if ordered else None

"""Define `smallest_unique(numbers)`: the smallest number that occurs exactly once in `numbers`. If there is no such
number, the result is `None`."""
EXAMPLE = ([2, 3, 3, 1],), 1
EDGES = [([1, 1, 2],)]

def smallest_unique(numbers):
    # wrong: ordered = sorted(set(numbers))
    ordered = sorted(n for n in numbers if numbers.count(n) == 1)
    return ordered[0] if ordered else None
