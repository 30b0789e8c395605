DRAW = lambda rng: (integers(rng, -12, 12, 4, 8),)
EDGES = [([],), ([5],)]

"""Define `sort_by_distance_from_zero(numbers)`: a new list of the integers sorted by absolute value, smallest first; of
a number and its negative the negative one comes first."""
EXAMPLE = ([-2, 1, 2],), [1, -2, 2]

def sort_by_distance_from_zero(numbers):
    # wrong: return sorted(numbers, key=lambda number: abs(number))
    return sorted(numbers, key=lambda number: (abs(number), number))

"""Define `sort_by_frequency(numbers)`: a new list of the integers sorted by how often they occur in `numbers`, most
frequent first, ascending among equally frequent ones."""
EXAMPLE = ([2, 1, 3, 1, 2, 2],), [2, 2, 2, 1, 1, 3]
EDGES = [([3, 1, 2],)]
DRAW = lambda rng: (integers(rng, 1, 5, 5, 10),)

def sort_by_frequency(numbers):
    # wrong: return sorted(numbers, key=lambda number: -numbers.count(number))
    return sorted(numbers, key=lambda number: (-numbers.count(number), number))

"""Define `sort_by_last_digit(numbers)`: a new list of the integers sorted by their last decimal digit, ascending, and
ascending among those with the same last digit; all of them are non-negative."""
EXAMPLE = ([31, 12, 2, 30],), [30, 31, 2, 12]
EDGES = [([12, 2],)]
DRAW = lambda rng: (integers(rng, 0, 60, 5, 9),)

def sort_by_last_digit(numbers):
    # wrong: return sorted(numbers, key=lambda number: number % 10)
    return sorted(numbers, key=lambda number: (number % 10, number))

"""Define `evens_first(numbers)`: a new list of the integers sorted so that all even ones come before all odd ones,
where both the even and the odd ones keep their order in `numbers`."""
EXAMPLE = ([3, 4, 1, 2],), [4, 2, 3, 1]

def evens_first(numbers):
    # wrong: return sorted(numbers, key=lambda number: (number % 2, number))
    return sorted(numbers, key=lambda number: number % 2)
