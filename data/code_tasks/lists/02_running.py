DRAW = lambda rng: (integers(rng, -9, 15, 3, 8),)
EDGES = [([],), ([5],), ([1, 2, 3, 4],), ([-2, -3],)]

"""Define `running_sums(numbers)`: a list of the same length in which each number is replaced by the sum of all numbers
up to and including it; the empty list gives `[]`."""
EXAMPLE = ([3, -1, 4],), [3, 2, 6]

def running_sums(numbers):
    # wrong: return [sum(numbers[:i]) for i in range(len(numbers))]
    return [sum(numbers[: i + 1]) for i in range(len(numbers))]

"""Define `running_maxima(numbers)`: a list of the same length in which each number is replaced by the greatest one up
to and including it; the empty list gives `[]`."""
EXAMPLE = ([3, -1, 4],), [3, 3, 4]

def running_maxima(numbers):
    # wrong: return [max(numbers[max(0, i - 1) : i + 1]) for i in range(len(numbers))]
    return [max(numbers[: i + 1]) for i in range(len(numbers))]

"""Define `differences(numbers)`: the list of each number but the first minus the one before it (one entry fewer than
`numbers`); the empty list gives `[]`."""
EXAMPLE = ([3, -1, 4],), [-4, 5]

def differences(numbers):
    # wrong: return [abs(numbers[i + 1] - numbers[i]) for i in range(len(numbers) - 1)]
    return [numbers[i + 1] - numbers[i] for i in range(len(numbers) - 1)]

"""Define `sums_of_others(numbers)`: a list of the same length in which each number is replaced by the sum of the
numbers at all other positions; the empty list gives `[]`."""
EXAMPLE = ([3, -1, 4],), [3, 7, 2]
EDGES = [([2, 2],), ([3, 3, 1],)]

def sums_of_others(numbers):
    # wrong: return [sum(number for number in numbers if number != numbers[i]) for i in range(len(numbers))]
    return [sum(numbers) - numbers[i] for i in range(len(numbers))]
