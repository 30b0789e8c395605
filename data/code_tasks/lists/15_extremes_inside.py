DRAW = lambda rng: (integers(rng, 0, 6, 4, 10),)
EDGES = [([],), ([4],), ([2, 2],), ([1, 2, 3],), ([3, 2, 1],)]

"""Define `peaks(numbers)`: the ascending list of the positions (from 0) whose number is greater than each of its
neighbours; the first and the last number have only one neighbour, and a single number is a peak."""
EXAMPLE = ([3, 1, 2, 2],), [0]

def peaks(numbers):
    result = []
    for i, number in enumerate(numbers):
        neighbours = numbers[max(i - 1, 0) : i] + numbers[i + 1 : i + 2]
        # wrong: if all(number >= n for n in neighbours):
        if all(number > n for n in neighbours):
            result.append(i)
    return result

"""Define `inner_valleys(numbers)`: the ascending list of the positions (from 0) whose number is less than both of its
neighbours; the first and the last number never count."""
EXAMPLE = ([3, 1, 2, 0],), [1]

def inner_valleys(numbers):
    result = []
    for i, number in enumerate(numbers):
        neighbours = numbers[max(i - 1, 0) : i] + numbers[i + 1 : i + 2]
        # wrong: if all(number < n for n in neighbours):
        if len(neighbours) == 2 and number < min(neighbours):
            result.append(i)
    return result

"""Define `records(numbers)`: the ascending list of the positions (from 0) whose number is greater than all numbers
before it; the first number always counts."""
EXAMPLE = ([3, 1, 2, 4],), [0, 3]

def records(numbers):
    result = []
    for i, number in enumerate(numbers):
        # wrong: neighbours = numbers[0 : i] + numbers[i + 1 : i + 2]
        # wrong: if all(number >= n for n in neighbours):
        if all(number > n for n in numbers[:i]):
            result.append(i)
    return result

"""Define `right_leaders(numbers)`: the ascending list of the positions (from 0) whose number is greater than all
numbers behind it; the last number always counts."""
EXAMPLE = ([3, 5, 2, 2],), [1, 3]

def right_leaders(numbers):
    result = []
    for i, number in enumerate(numbers):
        # wrong: if all(number >= n for n in numbers[i + 1 :]):
        if all(number > n for n in numbers[i + 1 :]):
            result.append(i)
    return result
