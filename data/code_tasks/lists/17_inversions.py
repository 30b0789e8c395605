DRAW = lambda rng: (integers(rng, 0, 12, 4, 10),)
EDGES = [([],), ([1],), ([2, 2],), ([4, 3, 2, 1],), ([1, 2, 3],)]

"""Define `count_inversions(numbers)`: the number of pairs of positions i < j with numbers[i] > numbers[j]."""
EXAMPLE = ([3, 1, 1],), 2

def count_inversions(numbers):
    count = 0
    for j in range(len(numbers)):
        for i in range(j):
            # wrong: if numbers[i] >= numbers[j]:
            if numbers[i] > numbers[j]:
                count += 1
    return count

"""Define `count_strong_inversions(numbers)`: the number of pairs of positions i < j with numbers[i] > 2 *
numbers[j]."""
EXAMPLE = ([7, 3, 4],), 1
EDGES = [([4, 2],)]

def count_strong_inversions(numbers):
    count = 0
    for j in range(len(numbers)):
        for i in range(j):
            # wrong: if numbers[i] >= 2 * numbers[j]:
            if numbers[i] > 2 * numbers[j]:
                count += 1
    return count

"""Define `count_far_inversions(numbers)`: the number of pairs of positions i < j with numbers[i] > numbers[j] and j - i
at least 2."""
EXAMPLE = ([3, 1, 2],), 1

def count_far_inversions(numbers):
    count = 0
    for j in range(len(numbers)):
        for i in range(j):
            # wrong: if numbers[i] > numbers[j] and j - i > 2:
            if numbers[i] > numbers[j] and j - i >= 2:
                count += 1
    return count

"""Define `count_rises_by_parity(numbers)`: the number of pairs of positions i < j with numbers[i] < numbers[j] and an
odd sum numbers[i] + numbers[j]."""
EXAMPLE = ([1, 4, 2],), 2

def count_rises_by_parity(numbers):
    count = 0
    for j in range(len(numbers)):
        for i in range(j):
            # wrong: if numbers[i] <= numbers[j] and (numbers[i] + numbers[j]) % 2 == 0:
            if numbers[i] < numbers[j] and (numbers[i] + numbers[j]) % 2 == 1:
                count += 1
    return count
