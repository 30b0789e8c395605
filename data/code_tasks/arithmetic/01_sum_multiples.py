DRAW = lambda rng: (rng.randint(5, 120),)
EDGES = [(0,), (-5,), (1,), (28,), (15,)]

"""Define `sum_of_3_or_5(n)`: the sum of the positive integers below `n` that are divisible by 3 or by 5, 0 if there are
none. `n` is an integer, possibly negative."""
EXAMPLE = (10,), 23

def sum_of_3_or_5(n):
    # wrong: return sum(i for i in range(1, n + 1) if i % 3 == 0 or i % 5 == 0)
    return sum(i for i in range(1, n) if i % 3 == 0 or i % 5 == 0)

"""Define `sum_of_4_or_6(n)`: the sum of the positive integers up to and including `n` that are divisible by 4 or by 6
(those divisible by both count once), 0 if there are none. `n` is an integer, possibly negative."""
EXAMPLE = (12,), 30

def sum_of_4_or_6(n):
    # wrong: return sum(i for i in range(1, n) if i % 4 == 0 or i % 6 == 0)
    return sum(i for i in range(1, n + 1) if i % 4 == 0 or i % 6 == 0)

"""Define `sum_of_odd_7(n)`: the sum of the positive integers up to and including `n` that are divisible by 7 but not by
2, 0 if there are none. `n` is an integer, possibly negative."""
EXAMPLE = (21,), 28

def sum_of_odd_7(n):
    # wrong: return sum(i for i in range(1, n) if i % 7 == 0 and i % 2 != 0)
    return sum(i for i in range(1, n + 1) if i % 7 == 0 and i % 2 != 0)

"""Define `sum_of_3_or_4_not_both(n)`: the sum of the positive integers below `n` that are divisible by 3 or by 4 but
not by both, 0 if there are none. `n` is an integer, possibly negative."""
EXAMPLE = (13,), 30

def sum_of_3_or_4_not_both(n):
    # wrong: return sum(i for i in range(1, n + 1) if (i % 3 == 0) != (i % 4 == 0))
    return sum(i for i in range(1, n) if (i % 3 == 0) != (i % 4 == 0))
