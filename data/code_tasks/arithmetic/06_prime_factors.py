DRAW = lambda rng: (rng.randint(2, 5000),)
EDGES = [(1,), (2,), (49,), (97,), (1024,)]

"""Define `factorize(n)` for a positive integer `n`: the ascending list of its prime factors, each as often as it
divides `n`; `[]` for 1. (1 has no prime factors.)"""
EXAMPLE = (60,), [2, 2, 3, 5]

def factorize(n):
    factors = []
    divisor = 2
    while divisor * divisor <= n:
        while n % divisor == 0:
            factors.append(divisor)
            n //= divisor
        divisor += 1
    # wrong (2 lines):
    if n > 1:
        factors.append(n)
    return factors

"""Define `distinct_prime_factors(n)` for a positive integer `n`: the ascending list of its different prime factors;
`[]` for 1. (1 has no prime factors.)"""
EXAMPLE = (60,), [2, 3, 5]

def distinct_prime_factors(n):
    factors = []
    divisor = 2
    while divisor * divisor <= n:
        while n % divisor == 0:
            factors.append(divisor)
            n //= divisor
        divisor += 1
    # wrong (2 lines):
    if n > 1:
        factors.append(n)
    return sorted(set(factors))

"""Define `count_prime_factors(n)` for a positive integer `n`: how many prime factors it has, counted as often as they
divide `n`; 0 for 1. (1 has no prime factors.)"""
EXAMPLE = (60,), 4

def count_prime_factors(n):
    factors = []
    divisor = 2
    while divisor * divisor <= n:
        while n % divisor == 0:
            factors.append(divisor)
            n //= divisor
        divisor += 1
    # wrong (2 lines):
    if n > 1:
        factors.append(n)
    return len(factors)

"""Define `prime_powers(n)` for a positive integer `n`: the list of tuples (prime, exponent), ascending by prime, whose
powers multiply to `n`; `[]` for 1. (1 has no prime factors.)"""
EXAMPLE = (60,), [(2, 2), (3, 1), (5, 1)]

def prime_powers(n):
    factors = []
    divisor = 2
    while divisor * divisor <= n:
        while n % divisor == 0:
            factors.append(divisor)
            n //= divisor
        divisor += 1
    # wrong (2 lines):
    if n > 1:
        factors.append(n)
    return [(prime, factors.count(prime)) for prime in sorted(set(factors))]
