DRAW = lambda rng: (integers(rng, -9, 8, 3, 9),)
EDGES = [([],), ([-5],), ([3],), ([0],)]

"""A stretch is a run of one or more neighbouring entries of a list. Define `greatest_stretch_sum(numbers)`: the
greatest sum of a stretch, `None` for the empty list."""
EXAMPLE = ([2, -3, 4, 1],), 5
EDGES = [([-3, -1, -2],)]

def greatest_stretch_sum(numbers):
    stretches = [(i, j) for i in range(len(numbers)) for j in range(i + 1, len(numbers) + 1)]
    values = [(sum(numbers[i:j]), -i, j - i) for i, j in stretches]
    # wrong: return max(0, max(values)[0]) if values else None
    return max(values)[0] if values else None

"""A stretch is a run of zero or more neighbouring entries of a list. Define `greatest_stretch_sum_or_zero(numbers)`:
the greatest sum of a stretch, where the empty stretch has the sum 0."""
EXAMPLE = ([-2, -3],), 0
EDGES = [([-3, -1, -2],)]

def greatest_stretch_sum_or_zero(numbers):
    stretches = [(i, j) for i in range(len(numbers)) for j in range(i + 1, len(numbers) + 1)]
    values = [(sum(numbers[i:j]), -i, j - i) for i, j in stretches]
    # wrong: return max(values)[0] if values else 0
    return max(0, max(values)[0]) if values else 0

"""A stretch is a run of one or more neighbouring entries of a list. Define `greatest_stretch(numbers)`: the stretch
with the greatest sum, as a list; if several tie, the one that starts first, and of those the longest one; `[]` for the
empty list."""
EXAMPLE = ([2, -3, 4, 1],), [4, 1]
EDGES = [([0, 2, 0],), ([1, -1, 1],), ([0, 0],)]

def greatest_stretch(numbers):
    stretches = [(i, j) for i in range(len(numbers)) for j in range(i + 1, len(numbers) + 1)]
    values = [(sum(numbers[i:j]), -i, j - i) for i, j in stretches]
    # wrong: return numbers[-(best := max(values, key=lambda v: (v[0], v[1], -v[2])))[1] :][: best[2]] if values else []
    return numbers[-max(values)[1] :][: max(values)[2]] if values else []

"""A stretch is a run of one or more neighbouring entries of a list. Define `stretches_of_sum_zero(numbers)`: the number
of stretches whose sum is 0 (stretches at different places count separately)."""
EXAMPLE = ([3, -3, 4, -4],), 3
EDGES = [([0, 0, 0],), ([1, -1, 0],)]
DRAW = lambda rng: (integers(rng, -2, 2, 4, 9),)

def stretches_of_sum_zero(numbers):
    stretches = [(i, j) for i in range(len(numbers)) for j in range(i + 1, len(numbers) + 1)]
    values = [(sum(numbers[i:j]) == 0, -i, j - i) for i, j in stretches]
    # wrong: return len({i for value, i, _ in values if value})
    return sum(value for value, *_ in values)
