DRAW = weighted
EDGES = [(1, []), (2, []), (2, [(0, 1, 7)]), (3, [(0, 1, 9), (0, 2, 1), (2, 1, 1)])]

"""A network has the nodes 0 to `n` - 1 (`n` is at least 1) and the list `cables` of tuples (a, b, cost): possible
cables between different nodes with positive integer costs. Define `cheapest_network(n, cables)`: the least total cost
of cables that connect all nodes with each other, directly or by way of others; -1 if that is impossible."""
EXAMPLE = (3, [(0, 1, 4), (1, 2, 2), (2, 0, 3)]), 5

def cheapest_network(n, cables):
    label = list(range(n))
    costs = []
    # wrong: for a, b, cost in cables:
    for a, b, cost in sorted(cables, key=lambda cable: cable[2]):
        if label[a] != label[b]:
            costs.append(cost)
            label = [label[a] if name == label[b] else name for name in label]
    return sum(costs) if len(costs) == n - 1 else -1

"""A network has the nodes 0 to `n` - 1 (`n` is at least 1) and the list `cables` of tuples (a, b, cost): possible
cables between different nodes with positive integer costs. Define `dearest_needed_cable(n, cables)`: the least number m
such that the cables of cost at most m connect all nodes with each other, directly or by way of others; 0 if n is 1,
`None` if no cables do."""
EXAMPLE = (3, [(0, 1, 4), (1, 2, 2), (2, 0, 3)]), 3

def dearest_needed_cable(n, cables):
    label = list(range(n))
    costs = []
    # wrong: for a, b, cost in cables:
    for a, b, cost in sorted(cables, key=lambda cable: cable[2]):
        if label[a] != label[b]:
            costs.append(cost)
            label = [label[a] if name == label[b] else name for name in label]
    return max(costs, default=0) if len(costs) == n - 1 else None

"""A network has the nodes 0 to `n` - 1 (`n` is at least 1) and the list `cables` of tuples (a, b, cost): possible
cables between different nodes with positive integer costs. Define `dearest_tree(n, cables)`: the greatest total cost of
n - 1 cables that connect all nodes with each other, directly or by way of others; -1 if that is impossible."""
EXAMPLE = (3, [(0, 1, 4), (1, 2, 2), (2, 0, 3)]), 7

def dearest_tree(n, cables):
    label = list(range(n))
    costs = []
    # wrong: for a, b, cost in cables:
    for a, b, cost in sorted(cables, key=lambda cable: -cable[2]):
        if label[a] != label[b]:
            costs.append(cost)
            label = [label[a] if name == label[b] else name for name in label]
    return sum(costs) if len(costs) == n - 1 else -1
