DRAW = lambda rng: (rng.randint(2, 12), rng.randint(1, 6))
EDGES = [(1, 1), (1, 5), (4, 1), (3, 7)]

"""`count` people numbered 1 to `count` (at least 1) stand in a circle. Counting starts at person 1 and goes round in
ascending order; every `step`-th person counted leaves, and counting goes on with the next one still there. Define
`elimination_order(count, step)`, `step` at least 1: the list of all numbers in the order in which people leave."""
EXAMPLE = (5, 2), [2, 4, 1, 5, 3]

def elimination_order(count, step):
    circle, order = list(range(1, count + 1)), []
    position = 0
    while circle:
        # wrong: position = (position + step - 0) % len(circle)
        position = (position + step - 1) % len(circle)
        order.append(circle.pop(position))
    return order

"""`count` people numbered 1 to `count` (at least 1) stand in a circle. Counting starts at person 1 and goes round in
ascending order; every `step`-th person counted leaves, and counting goes on with the next one still there. Define
`last_one_left(count, step)`, `step` at least 1: the number of the last person to leave."""
EXAMPLE = (5, 2), 3

def last_one_left(count, step):
    circle, order = list(range(1, count + 1)), []
    position = 0
    while circle:
        # wrong: position = (position + step - 0) % len(circle)
        position = (position + step - 1) % len(circle)
        order.append(circle.pop(position))
    return order[-1]
