from itertools import combinations

DRAW = lambda rng: (integers(rng, 1, 15, 4, 9),)
EDGES = [([],), ([5],), ([5, 4, 2],), ([1, 2, 3],)]

def profit(prices, pause=0, fee=0, first=0):
    found = [0]
    for i, j in combinations(range(first, len(prices)), 2):
        gain = prices[j] - prices[i] - fee
        found.append(gain + (profit(prices, pause, fee, j + pause) if gain > 0 else 0))
    return max(found)

"""`prices` lists the prices of a share on successive days. You may buy one share on one day and sell it on a later day,
once. Define `profit_of_one_trade(prices)`: the greatest possible profit, 0 if no trade is worthwhile or the list is
empty."""
EXAMPLE = ([3, 1, 4, 2, 6],), 5
ORACLE = lambda prices: profit(prices, pause=99)

def profit_of_one_trade(prices):
    # wrong: return max(prices) - min(prices) if prices else 0
    return max((b - a for i, a in enumerate(prices) for b in prices[i:]), default=0)

"""`prices` lists the prices of a share on successive days. You may buy one share and sell it on a later day, any number
of times, but never own more than one share (you may sell and buy again on the same day). Define
`profit_of_many_trades(prices)`: the greatest possible profit, 0 if no trade is worthwhile or the list is empty."""
EXAMPLE = ([3, 1, 4, 2, 6],), 7
ORACLE = profit

def profit_of_many_trades(prices):
    # wrong: return max((b - a for i, a in enumerate(prices) for b in prices[i:]), default=0)
    return sum(max(b - a, 0) for a, b in zip(prices, prices[1:]))

"""`prices` lists the prices of a share on successive days. You may buy one share and sell it on a later day, any number
of times, but never own more than one share; each purchase costs a fee of 2 on top of the price. Define
`profit_with_fee(prices)`: the greatest possible profit, 0 if no trade is worthwhile or the list is empty."""
EXAMPLE = ([3, 1, 4, 2, 7],), 4
EDGES = [([1, 3, 5],)]
ORACLE = lambda prices: profit(prices, fee=2)

def profit_with_fee(prices):
    # wrong (4 lines): return sum(max(b - a - 2, 0) for a, b in zip(prices, prices[1:]))
    cash, owning = 0, float("-inf")
    for price in prices:
        cash, owning = max(cash, owning + price), max(owning, cash - price - 2)
    return cash

"""`prices` lists the prices of a share on successive days. You may buy one share and sell it on a later day, any number
of times, but never own more than one share, and on the day of a sale and the day after it you must not buy. Define
`profit_with_pause(prices)`: the greatest possible profit, 0 if no trade is worthwhile or the list is empty."""
EXAMPLE = ([3, 1, 4, 2, 6],), 5
EDGES = [([1, 2, 3, 1, 4],)]
ORACLE = lambda prices: profit(prices, pause=2)

def profit_with_pause(prices):
    # wrong (4 lines): return sum(max(b - a, 0) for a, b in zip(prices, prices[1:]))
    rested, sold, owning = 0, 0, float("-inf")
    for price in prices:
        owning, rested, sold = max(owning, rested - price), max(rested, sold), owning + price
    return max(rested, sold, 0)
