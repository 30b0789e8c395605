DRAW = lambda rng: lines(integers(rng, 0, 12, 2, 8))

"""The input has one line of non-negative integers separated by spaces (at least one), the costs of stepping on stones
1, 2, ..., n in a row. You start on the bank before stone 1, each move goes 1 or 2 stones ahead, and you want to reach
stone n. Write a program that prints the least total cost of the stones stepped on."""
EXAMPLE = "5 1 9 2\n", "3"
EDGES = ["7\n", "4 4\n"]

costs = list(map(int, input().split()))
best = [0]
for i, cost in enumerate(costs, 1):
    # wrong: best.append(cost + min(best[max(0, i - 3) : i]))
    best.append(cost + min(best[max(0, i - 2) : i]))
print(best[-1])

"""The input has one line of non-negative integers separated by spaces (at least one), the costs of stepping on stones
1, 2, ..., n in a row. You start on the bank before stone 1, each move goes 1, 2 or 3 stones ahead, and you want to
reach the other bank, which lies one place behind stone n. Write a program that prints the least total cost of the
stones stepped on."""
EXAMPLE = "5 1 9 2\n", "1"
EDGES = ["7\n", "4 4 4\n"]

# wrong: costs = list(map(int, input().split()))
costs = list(map(int, input().split())) + [0]
best = [0]
for i, cost in enumerate(costs, 1):
    best.append(cost + min(best[max(0, i - 3) : i]))
print(best[-1])

"""The input has one line of non-negative integers separated by spaces (at least one), the costs of stepping on stones
1, 2, ..., n in a row. You start on the bank before stone 1, each move goes 1 or 2 stones ahead, and you want to reach
the other bank, which lies one place behind stone n. Write a program that prints the least total cost of the stones
stepped on."""
EXAMPLE = "5 1 9 2\n", "3"
EDGES = ["7\n", "3 3 3\n"]

costs = list(map(int, input().split())) + [0]
best = [0]
for i, cost in enumerate(costs, 1):
    # wrong: best.append(cost + min(best[max(0, i - 3) : i]))
    best.append(cost + min(best[max(0, i - 2) : i]))
print(best[-1])
