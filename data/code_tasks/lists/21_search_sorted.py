DRAW = lambda rng: (sorted(integers(rng, 0, 9, 3, 9)), rng.randint(-1, 10))
EDGES = [([], 1), ([2], 2), ([2, 2, 2], 2), ([1, 5], 3), ([1, 2], 9)]

"""`numbers` is an ascending list of integers, in which numbers may repeat. Define `count_sorted(numbers, value)`: how
often `value` occurs in it."""
EXAMPLE = ([1, 3, 3, 5], 3), 2

from bisect import bisect_left, bisect_right


def count_sorted(numbers, value):
    left = bisect_left(numbers, value)
    # wrong (2 lines): return int(left < len(numbers) and numbers[left] == value)
    right = bisect_right(numbers, value)
    return right - left

"""`numbers` is an ascending list of integers, in which numbers may repeat. Define `first_and_last(numbers, value)`: the
tuple of the first and the last position (from 0) of `value`, or `(-1, -1)` if it does not occur."""
EXAMPLE = ([1, 3, 3, 5], 3), (1, 2)

from bisect import bisect_left, bisect_right


def first_and_last(numbers, value):
    left = bisect_left(numbers, value)
    right = bisect_right(numbers, value)
    # wrong: return (left, right) if left < right else (-1, -1)
    return (left, right - 1) if left < right else (-1, -1)

"""`numbers` is an ascending list of integers, in which numbers may repeat. Define `nearest_value(numbers, value)`: the
number in it nearest to `value`, the smaller one if two are equally near, `None` if the list is empty."""
EXAMPLE = ([1, 3, 3, 5], 4), 3

# wrong: from bisect import bisect_left, bisect_right
# wrong:
# wrong:
# wrong: def nearest_value(numbers, value):
def nearest_value(numbers, value):
    # wrong: left = bisect_left(numbers, value)
    # wrong: return numbers[left] if left < len(numbers) else None
    return min(numbers, key=lambda number: (abs(number - value), number), default=None)

"""`numbers` is an ascending list of integers, in which numbers may repeat. Define `least_above(numbers, value)`: the
least number in it that is greater than `value`, or `None` if there is none."""
EXAMPLE = ([1, 3, 3, 5], 3), 5

from bisect import bisect_left, bisect_right


def least_above(numbers, value):
    # wrong: left = bisect_left(numbers, value)
    right = bisect_right(numbers, value)
    # wrong: return numbers[left] if left < len(numbers) else None
    return numbers[right] if right < len(numbers) else None
