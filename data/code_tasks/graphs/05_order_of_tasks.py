DRAW = dag
EDGES = [(1, []), (3, []), (2, [(1, 0)]), (3, [(0, 1), (1, 2), (2, 0)]), (4, [(3, 0), (0, 1)])]

"""A directed graph has the nodes 0 to `n` - 1 (`n` is at least 1) and for each tuple (a, b) in the list `edges` an edge
from a to b, where a and b differ and no tuple stands there twice. An edge from a to b says that a must come before b.
Define `smallest_order(n, edges)`: the lexicographically smallest list of all nodes that respects this (at each place
the smallest node that may come next), `[]` if there is none."""
EXAMPLE = (3, [(2, 0)]), [1, 2, 0]

def smallest_order(n, edges):
    order, rounds = [], 0
    while len(order) < n:
        ready = [node for node in range(n) if node not in order and all(a in order for a, b in edges if b == node)]
        if not ready:
            return []
        # wrong: order += ready
        order += ready[:1]
        rounds += 1
    return order

"""A directed graph has the nodes 0 to `n` - 1 (`n` is at least 1) and for each tuple (a, b) in the list `edges` an edge
from a to b, where a and b differ and no tuple stands there twice. An edge from a to b says that a must come before b.
Define `largest_order(n, edges)`: the lexicographically largest list of all nodes that respects this (at each place the
largest node that may come next), `None` if there is none."""
EXAMPLE = (3, [(2, 0)]), [2, 1, 0]

def largest_order(n, edges):
    order, rounds = [], 0
    while len(order) < n:
        ready = [node for node in range(n) if node not in order and all(a in order for a, b in edges if b == node)]
        if not ready:
            return None
        # wrong: order += ready[::-1]
        order += ready[-1:]
        rounds += 1
    return order

"""A directed graph has the nodes 0 to `n` - 1 (`n` is at least 1) and for each tuple (a, b) in the list `edges` an edge
from a to b, where a and b differ and no tuple stands there twice. An edge from a to b says that a must come before b.
Define `count_rounds(n, edges)`: the least number of rounds in which all nodes can be done if in each round any number
of nodes are done at once, each after all that must come before it were done in earlier rounds; -1 if it is
impossible."""
EXAMPLE = (3, [(2, 0)]), 2

def count_rounds(n, edges):
    order, rounds = [], 0
    while len(order) < n:
        ready = [node for node in range(n) if node not in order and all(a in order for a, b in edges if b == node)]
        if not ready:
            return -1
        # wrong: order += ready[:1]
        order += ready
        rounds += 1
    return rounds

"""A directed graph has the nodes 0 to `n` - 1 (`n` is at least 1) and for each tuple (a, b) in the list `edges` an edge
from a to b, where a and b differ and no tuple stands there twice. An edge from a to b says that a must come before b.
Define `has_order(n, edges)`: `True` if the nodes can be put into an order that respects this, else `False`."""
EXAMPLE = (3, [(2, 0), (0, 2)]), False
EDGES = [(3, [(0, 1), (1, 0)]), (4, [(3, 0), (0, 1), (1, 2), (2, 0)])]
DRAW = digraph

def has_order(n, edges):
    order, rounds = [], 0
    while len(order) < n:
        ready = [node for node in range(n) if node not in order and all(a in order for a, b in edges if b == node)]
        if not ready:
            # wrong: return len(order) > 0
            return False
        order += ready
        rounds += 1
    return True
