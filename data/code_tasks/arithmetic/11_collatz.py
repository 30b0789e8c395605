DRAW = lambda rng: (rng.randint(2, 120),)
EDGES = [(1,), (2,), (27,), (8,)]

"""Start with the positive integer `n`. An even number is halved, an odd one is tripled and increased by 1. Stop at 1.
Define `collatz_steps(n)`: the number of steps until 1 is reached, 0 for 1."""
EXAMPLE = (6,), 8

def collatz_steps(n):
    chain = [n]
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        chain.append(n)
    # wrong: return len(chain) - (len(chain) > 9)
    return len(chain) - 1

"""Start with the positive integer `n`. An even number is halved, an odd one is tripled and increased by 1. Stop at 1.
Define `collatz_peak(n)`: the greatest number on the way, `n` and 1 included."""
EXAMPLE = (3,), 16

def collatz_peak(n):
    chain = [n]
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        chain.append(n)
    # wrong: return max(chain[1:] or [1])
    return max(chain)

"""Start with the positive integer `n`. An even number is halved, an odd one is tripled and increased by 1. Stop at 1.
Define `collatz_odd_steps(n)`: how many odd numbers greater than 1 occur on the way, `n` included."""
EXAMPLE = (3,), 2

def collatz_odd_steps(n):
    chain = [n]
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        chain.append(n)
    # wrong: return sum(number % 2 for number in chain[1:])
    return sum(number % 2 for number in chain[:-1])
