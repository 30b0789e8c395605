DRAW = lambda rng: (rng.sample(range(1, 9), rng.randint(2, 4)), rng.randint(3, 15))
EDGES = [([], 0), ([], 3), ([5], 0), ([2], 3), ([5, 2], 10), ([1, 2, 3], 6)]

"""`coins` is a list of different positive integers, the values of coins, each available without limit. Define
`fewest_coins(coins, total)` for an integer `total` of at least 0: the least number of coins whose values add up to
`total`, or -1 if no coins do; 0 needs no coins."""
EXAMPLE = ([1, 3, 4], 6), 2

def fewest_coins(coins, total):
    table = [0] + [float("inf")] * total
    # wrong (2 lines): rest = total
    # wrong: table[total] = 0
    # wrong: for coin in sorted(coins, reverse=True):
        # wrong: table[total] += rest // coin
        # wrong: rest %= coin
    # wrong: if rest:
        # wrong: table[total] = float("inf")
    for amount in range(1, total + 1):
        table[amount] = min([table[amount - c] + 1 for c in coins if c <= amount], default=float("inf"))
    return table[total] if table[total] < float("inf") else -1

"""`coins` is a list of different positive integers, the values of coins, each available without limit. Define
`count_coin_sets(coins, total)` for an integer `total` of at least 0: the number of ways to choose coins that add up to
`total`, where only the number of coins of each value matters, not their order; there is one way to make 0."""
EXAMPLE = ([1, 2], 4), 3

def count_coin_sets(coins, total):
    table = [1] + [0] * total
    # wrong (3 lines): for amount in range(1, total + 1):
        # wrong: table[amount] = sum(table[amount - coin] for coin in coins if coin <= amount)
    for coin in coins:
        for amount in range(coin, total + 1):
            table[amount] += table[amount - coin]
    return table[total]

"""`coins` is a list of different positive integers, the values of coins, each available without limit. Define
`count_coin_orders(coins, total)` for an integer `total` of at least 0: the number of sequences of coins that add up to
`total`, where sequences in different order count as different; there is one sequence for 0."""
EXAMPLE = ([1, 2], 4), 5

def count_coin_orders(coins, total):
    table = [1] + [0] * total
    # wrong (2 lines): for coin in coins:
        # wrong: for amount in range(coin, total + 1):
            # wrong: table[amount] += table[amount - coin]
    for amount in range(1, total + 1):
        table[amount] = sum(table[amount - coin] for coin in coins if coin <= amount)
    return table[total]

"""`coins` is a list of different positive integers, the values of coins, each available only once. Define
`count_single_coin_sets(coins, total)` for an integer `total` of at least 0: the number of sets of coins that add up to
`total`; the empty set makes 0."""
EXAMPLE = ([1, 2, 3], 3), 2

def count_single_coin_sets(coins, total):
    table = [1] + [0] * total
    for coin in coins:
        # wrong: for amount in range(coin, total + 1):
        for amount in range(total, coin - 1, -1):
            table[amount] += table[amount - coin]
    return table[total]
