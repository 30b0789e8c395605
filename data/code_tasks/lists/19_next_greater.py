DRAW = lambda rng: (integers(rng, 0, 9, 4, 8),)
EDGES = [([],), ([5],), ([2, 2],), ([1, 2, 3],), ([3, 1, 0, 4],)]

"""Define `next_greater_value(numbers)`: a list of the same length that has for each number the nearest greater number
behind it, or `None` if there is none."""
EXAMPLE = ([2, 1, 3],), [3, 3, None]

def next_greater_value(numbers):
    result = []
    for i, number in enumerate(numbers):
        # wrong: later = (n for n in numbers[i + 1 :] if n >= number)
        later = (n for n in numbers[i + 1 :] if n > number)
        result.append(next(later, None))
    return result

"""Define `steps_to_greater(numbers)`: a list of the same length that has for each number how many places behind it the
nearest greater number stands (1 for the very next), or 0 if there is none."""
EXAMPLE = ([2, 1, 3],), [2, 1, 0]

def steps_to_greater(numbers):
    result = []
    for i, number in enumerate(numbers):
        # wrong: later = (j - i for j in range(i + 1, len(numbers)) if numbers[j] >= number)
        later = (j - i for j in range(i + 1, len(numbers)) if numbers[j] > number)
        result.append(next(later, 0))
    return result

"""Define `previous_smaller_value(numbers)`: a list of the same length that has for each number the nearest smaller
number before it, or -1 if there is none (all numbers are non-negative)."""
EXAMPLE = ([2, 1, 3],), [-1, -1, 1]

def previous_smaller_value(numbers):
    result = []
    for i, number in enumerate(numbers):
        # wrong: earlier = (n for n in numbers[:i] if n < number)
        earlier = (n for n in numbers[:i][::-1] if n < number)
        result.append(next(earlier, -1))
    return result

"""Define `count_smaller_behind(numbers)`: a list of the same length that has for each number how many of the numbers
behind it are smaller."""
EXAMPLE = ([2, 1, 3],), [1, 0, 0]

def count_smaller_behind(numbers):
    result = []
    for i, number in enumerate(numbers):
        # wrong: later = sum(n <= number for n in numbers[i + 1 :])
        later = sum(n < number for n in numbers[i + 1 :])
        result.append(later)
    return result
