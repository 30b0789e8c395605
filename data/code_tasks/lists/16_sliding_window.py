DRAW = lambda rng: (integers(rng, -5, 15, 4, 9), rng.randint(1, 4))
EDGES = [([], 1), ([1, 2], 3), ([1, 2, 3], 3), ([5, 4], 1)]

"""Define `window_maxima(numbers, size)`: the list of the greatest of every `size` neighbouring numbers, from left to
right (`size` is at least 1); `[]` if there are fewer than `size` numbers."""
EXAMPLE = ([3, 1, 2], 2), [3, 2]

def window_maxima(numbers, size):
    # wrong: windows = [numbers[i : i + size] for i in range(len(numbers) - size)]
    windows = [numbers[i : i + size] for i in range(len(numbers) - size + 1)]
    return [max(window) for window in windows]

"""Define `window_sums(numbers, size)`: the list of the sums of every `size` neighbouring numbers, from left to right
(`size` is at least 1); `[]` if there are fewer than `size` numbers."""
EXAMPLE = ([3, 1, 2], 2), [4, 3]

def window_sums(numbers, size):
    # wrong: windows = [numbers[i : i + size] for i in range(len(numbers) - size)]
    windows = [numbers[i : i + size] for i in range(len(numbers) - size + 1)]
    return [sum(window) for window in windows]

"""Define `window_ranges(numbers, size)`: the list of the differences between the greatest and the least of every `size`
neighbouring numbers, from left to right (`size` is at least 1); `[]` if there are fewer than `size` numbers."""
EXAMPLE = ([3, 1, 2], 2), [2, 1]

def window_ranges(numbers, size):
    # wrong: windows = [numbers[i : i + size] for i in range(len(numbers) - size)]
    windows = [numbers[i : i + size] for i in range(len(numbers) - size + 1)]
    return [max(window) - min(window) for window in windows]

"""Define `window_varieties(numbers, size)`: the list of the numbers of different values of every `size` neighbouring
numbers, from left to right (`size` is at least 1); `[]` if there are fewer than `size` numbers."""
EXAMPLE = ([1, 1, 2], 2), [1, 2]
DRAW = lambda rng: (integers(rng, 0, 3, 5, 10), rng.randint(2, 4))

def window_varieties(numbers, size):
    # wrong: windows = [numbers[i : i + size] for i in range(len(numbers) - size)]
    windows = [numbers[i : i + size] for i in range(len(numbers) - size + 1)]
    return [len(set(window)) for window in windows]
