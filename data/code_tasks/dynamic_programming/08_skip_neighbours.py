DRAW = lambda rng: (integers(rng, 0, 12, 4, 9),)
EDGES = [([],), ([5],), ([3, 8],), ([0, 0, 0],), ([5, 1, 1, 5],)]

def best(numbers, gap=2, circle=False):
    sets = [[i for i in range(len(numbers)) if mask >> i & 1] for mask in range(1 << len(numbers))]
    fits = [taken for taken in sets if all(b - a >= gap for a, b in zip(taken, taken[1:]))]
    if circle:
        fits = [taken for taken in fits if len(numbers) == 1 or not {0, len(numbers) - 1} <= set(taken)]
    return max(sum(numbers[i] for i in taken) for taken in fits)

"""Define `best_without_neighbours(numbers)`: the greatest possible sum of entries of the list of non-negative integers
`numbers` if no two of them may stand directly next to each other; 0 for the empty list."""
EXAMPLE = ([2, 7, 9, 3],), 11
ORACLE = best

def best_without_neighbours(numbers):
    def best(row):
        table = [0] * 2
        for number in row:
            table.append(max(table[-1], table[-2] + number))
        return table[-1]

    # wrong: return max(sum(numbers[::2]), sum(numbers[1::2]))
    return best(numbers)

"""Define `best_in_circle(numbers)`: the greatest possible sum of entries of the list of non-negative integers `numbers`
if no two of them may stand directly next to each other, where the first and the last entry also count as next to each
other (a single entry may be taken); 0 for the empty list."""
EXAMPLE = ([2, 7, 9, 3],), 11
EDGES = [([5, 1, 5],), ([4, 4],)]
ORACLE = lambda numbers: best(numbers, circle=True)

def best_in_circle(numbers):
    def best(row):
        table = [0] * 2
        for number in row:
            table.append(max(table[-1], table[-2] + number))
        return table[-1]

    # wrong: return best(numbers)
    return max(best(numbers[1:]), best(numbers[:-1]), *numbers, 0)

"""Define `best_with_two_between(numbers)`: the greatest possible sum of entries of the list of non-negative integers
`numbers` if no two of them may be taken unless at least two other entries lie between them; 0 for the empty list."""
EXAMPLE = ([2, 7, 9, 3],), 9
ORACLE = lambda numbers: best(numbers, gap=3)

def best_with_two_between(numbers):
    def best(row):
        table = [0] * 3
        for number in row:
            table.append(max(table[-1], table[-3] + number))
        return table[-1]

    # wrong: return max(sum(numbers[i::3]) for i in range(3))
    return best(numbers)
