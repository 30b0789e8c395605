DRAW = lambda rng: (rng.randint(5, 140),)
EDGES = [(0,), (1,), (4,), (25,), (100,)]

"""Define `factorial_zeros(n)` for an integer `n` from 0 to 1000: the number of zeros at the end of the decimal form of
n!, where n! = 1 * 2 * ... * n and 0! = 1."""
EXAMPLE = (10,), 2

def factorial_zeros(n):
    # wrong:
    product = 1
    for i in range(2, n + 1):
        product *= i
    # wrong: return n // 5
    return len(str(product)) - len(str(product).rstrip("0"))

"""Define `factorial_digit_count(n)` for an integer `n` from 0 to 1000: the number of decimal digits of n!, where n! = 1
* 2 * ... * n and 0! = 1."""
EXAMPLE = (5,), 3

def factorial_digit_count(n):
    product = 1
    for i in range(2, n + 1):
        product *= i
    # wrong: return (product.bit_length() + 2) // 3
    return len(str(product))

"""Define `factorial_twos(n)` for an integer `n` from 0 to 1000: how often n! can be halved without remainder, where n!
= 1 * 2 * ... * n and 0! = 1."""
EXAMPLE = (10,), 8

def factorial_twos(n):
    # wrong:
    product = 1
    for i in range(2, n + 1):
        product *= i
    # wrong: return n // 2 + n // 4
    return (product & -product).bit_length() - 1
