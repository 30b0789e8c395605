DRAW = lambda rng: (lambda rows: lines((len(rows), rng.randint(4, 15)), *rows))(
    [(rng.randint(1, 7), rng.randint(1, 12)) for _ in range(rng.randint(2, 5))]
)
EDGES = ["1 3\n4 9\n", "1 8\n4 9\n"]

"""The first line of the input has two integers n (at least 1) and budget (at least 0), separated by a space; n lines
follow, each with the price (at least 1) and the value (at least 1) of a thing, separated by a space. Each thing can be
bought once. Write a program that prints the greatest total value of things whose total price is at most the budget."""
EXAMPLE = "2 4\n2 3\n3 4\n", "4"

count, budget = map(int, input().split())
best = [0] * (budget + 1)
for _ in range(count):
    price, value = map(int, input().split())
    # wrong: for money in range(price, budget + 1):
    for money in range(budget, price - 1, -1):
        best[money] = max(best[money], best[money - price] + value)
print(best[budget])

"""The first line of the input has two integers n (at least 1) and budget (at least 0), separated by a space; n lines
follow, each with the price (at least 1) and the value (at least 1) of a thing, separated by a space. Each thing can be
bought any number of times. Write a program that prints the greatest total value of things whose total price is at most
the budget."""
EXAMPLE = "2 4\n2 3\n3 4\n", "6"

count, budget = map(int, input().split())
best = [0] * (budget + 1)
for _ in range(count):
    price, value = map(int, input().split())
    # wrong: for money in range(budget, price - 1, -1):
    for money in range(price, budget + 1):
        best[money] = max(best[money], best[money - price] + value)
print(best[budget])

"""The first line of the input has two integers n (at least 1) and budget (at least 0), separated by a space; n lines
follow, each with the price (at least 1) and the value (at least 1) of a thing, separated by a space. Each thing can be
bought once. Write a program that prints the least amount of money that can remain of the budget after buying things
(values do not matter here)."""
EXAMPLE = "2 4\n2 3\n3 4\n", "1"

count, budget = map(int, input().split())
best = [0] * (budget + 1)
for _ in range(count):
    price, value = map(int, input().split())
    # wrong: for money in range(price, budget + 1):
    for money in range(budget, price - 1, -1):
        best[money] = max(best[money], best[money - price] + price)
print(budget - best[budget])
