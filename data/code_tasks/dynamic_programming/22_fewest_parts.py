DRAW = lambda rng: (rng.randint(5, 150),)
EDGES = [(0,), (1,), (2,), (7,), (23,), (100,)]

"""Define `fewest_squares(n)` for a non-negative integer `n`: the least number of positive square numbers (1, 4, 9,
...), repetitions allowed, whose sum is `n`; 0 for 0."""
EXAMPLE = (12,), 3
EDGES = [(18,)]

def fewest_squares(n):
    best = [0]
    for total in range(1, n + 1):
        # wrong: best.append(min(1 + best[before] for before in [total - max(i * i for i in range(1, total + 1) if i * i <= total)]))
        best.append(min(1 + best[before] for before in [total - i * i for i in range(1, total + 1) if i * i <= total]))
    return best[n]

"""Define `fewest_steps_from_zero(n)` for a non-negative integer `n`: the least number of steps that lead from 0 to `n`,
where a step adds 1 or doubles the number."""
EXAMPLE = (9,), 5

def fewest_steps_from_zero(n):
    best = [0]
    for total in range(1, n + 1):
        # wrong: best.append(min(1 + best[before] for before in [total // 2 if total > 1 else 0]))
        best.append(min(1 + best[before] for before in [total - 1] + ([total // 2] if total % 2 == 0 else [])))
    return best[n]

"""Define `fewest_steps_down(n)` for a non-negative integer `n`: the least number of steps that lead from `n` to 0,
where a step subtracts 1, or halves an even number, or divides a number divisible by 3 by 3."""
EXAMPLE = (10,), 4
EDGES = [(28,)]

def fewest_steps_down(n):
    best = [0]
    for total in range(1, n + 1):
        # wrong: best.append(min(1 + best[before] for before in [total // 3 if total % 3 == 0 else total // 2 if total % 2 == 0 else total - 1]))
        best.append(min(1 + best[before] for before in [total - 1] + [total // k for k in (2, 3) if total % k == 0]))
    return best[n]
