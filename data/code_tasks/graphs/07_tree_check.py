DRAW = lambda rng: (lambda n: (n, links(rng, n, rng.choice([n - 1, n - 1, n]))))(rng.randint(3, 5))
EDGES = [(1, []), (2, []), (2, [(0, 1)])]

"""A graph has the nodes 0 to `n` - 1 (`n` is at least 1) and the undirected edges in the list `edges`, tuples (a, b) of
different nodes, no edge twice, not even as (b, a). Define `is_tree(n, edges)`: `True` if it is a tree, that is
connected and without a cycle, else `False`."""
EXAMPLE = (3, [(0, 1), (1, 2)]), True
EDGES = [(4, [(0, 1), (1, 2), (2, 0)]), (4, [(0, 1), (1, 2), (2, 3), (3, 0)])]

def is_tree(n, edges):
    reached = {0}
    for _ in range(n):
        reached |= {b for a, b in edges if a in reached} | {a for a, b in edges if b in reached}
    # wrong: return len(edges) == n - 1
    return len(reached) == n and len(edges) == n - 1

"""A graph has the nodes 0 to `n` - 1 (`n` is at least 1) and the undirected edges in the list `edges`, tuples (a, b) of
different nodes, no edge twice, not even as (b, a). Define `is_connected(n, edges)`: `True` if every node can be reached
from node 0, else `False`."""
EXAMPLE = (3, [(0, 1)]), False
EDGES = [(4, [(0, 1), (1, 2), (2, 0)]), (4, [(3, 0), (3, 1), (3, 2)])]

def is_connected(n, edges):
    reached = {0}
    for _ in range(n):
        reached |= {b for a, b in edges if a in reached} | {a for a, b in edges if b in reached}
    # wrong: return len(edges) >= n - 1
    return len(reached) == n

"""A graph has the nodes 0 to `n` - 1 (`n` is at least 1) and the undirected edges in the list `edges`, tuples (a, b) of
different nodes, no edge twice, not even as (b, a). Define `cut_off_nodes(n, edges)`: the ascending list of the nodes
that cannot be reached from node 0."""
EXAMPLE = (4, [(0, 1), (2, 3)]), [2, 3]
EDGES = [(5, [(1, 2), (3, 4)])]

def cut_off_nodes(n, edges):
    reached = {0}
    for _ in range(n):
        reached |= {b for a, b in edges if a in reached} | {a for a, b in edges if b in reached}
    # wrong: return [node for node in range(n) if all(node not in edge for edge in edges)]
    return [node for node in range(n) if node not in reached]
