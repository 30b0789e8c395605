DRAW = lambda rng: (rng.randint(-5, 60), rng.randint(5, 150))
EDGES = [(1, 2), (9, 9), (25, 25), (20, 10), (-3, 4)]

"""Define `list_primes(low, high)`: the ascending list of the primes from `low` to `high`, both included. If there are
none, it is `[]`. `low` may be negative, and it may be greater than `high`. (A prime is an integer above 1 that only 1
and itself divide.)"""
EXAMPLE = (10, 20), [11, 13, 17, 19]

def list_primes(low, high):
    # wrong: primes = [n for n in range(max(low, 2), high + 1) if all(n % i for i in range(2, int(n**0.5)))]
    primes = [n for n in range(max(low, 2), high + 1) if all(n % i for i in range(2, int(n**0.5) + 1))]
    return primes

"""Define `count_primes(low, high)`: the number of primes from `low` to `high`, both included. If there are none, it is
0. `low` may be negative, and it may be greater than `high`. (A prime is an integer above 1 that only 1 and itself
divide.)"""
EXAMPLE = (3, 11), 4

def count_primes(low, high):
    # wrong: primes = [n for n in range(max(low, 2), high + 1) if all(n % i for i in range(2, int(n**0.5)))]
    primes = [n for n in range(max(low, 2), high + 1) if all(n % i for i in range(2, int(n**0.5) + 1))]
    return len(primes)

"""Define `largest_prime(low, high)`: the largest prime from `low` to `high`, both included. If there is none, it is
`None`. `low` may be negative, and it may be greater than `high`. (A prime is an integer above 1 that only 1 and itself
divide.)"""
EXAMPLE = (3, 12), 11
EDGES = [(24, 25), (2, 4), (8, 9), (32, 36)]

def largest_prime(low, high):
    # wrong: primes = [n for n in range(max(low, 2), high + 1) if all(n % i for i in range(2, int(n**0.5)))]
    primes = [n for n in range(max(low, 2), high + 1) if all(n % i for i in range(2, int(n**0.5) + 1))]
    return max(primes, default=None)

"""Define `widest_prime_gap(low, high)`: the greatest difference between two successive primes among the integers from
`low` to `high`, both included. If there are fewer than two primes, it is 0. `low` may be negative, and it may be
greater than `high`. (A prime is an integer above 1 that only 1 and itself divide.)"""
EXAMPLE = (2, 10), 2

def widest_prime_gap(low, high):
    # wrong: primes = [n for n in range(max(low, 2), high + 1) if all(n % i for i in range(2, int(n**0.5)))]
    primes = [n for n in range(max(low, 2), high + 1) if all(n % i for i in range(2, int(n**0.5) + 1))]
    return max((b - a for a, b in zip(primes, primes[1:])), default=0)
