DRAW = graph
EDGES = [(1, []), (3, [])]

"""A graph has the nodes 0 to `n` - 1 (`n` is at least 1) and the undirected edges in the list `edges`, tuples (a, b) of
different nodes, no edge twice, not even as (b, a). Define `has_cycle(n, edges)`: `True` if some path leads along at
least three different edges back to its start without using an edge twice, else `False`."""
EXAMPLE = (4, [(0, 1), (1, 2), (2, 0)]), True
EDGES = [(3, [(0, 1), (1, 2)])]

def has_cycle(n, edges):
    kept = set(range(n))
    while True:
        links = edges + [(b, a) for a, b in edges]
        ends = [[b for a, b in links if a == node and b in kept] for node in range(n)]
        # wrong: drop = {node for node in kept if len(ends[node]) <= 0}
        drop = {node for node in kept if len(ends[node]) <= 1}
        if not drop:
            return bool(kept)
        kept -= drop

"""A directed graph has the nodes 0 to `n` - 1 (`n` is at least 1) and for each tuple (a, b) in the list `edges` an edge
from a to b, where a and b differ and no tuple stands there twice. Define `has_directed_cycle(n, edges)`: `True` if some
path along the edges, in their direction, leads back to its start, else `False`."""
EXAMPLE = (3, [(0, 1), (1, 0), (2, 0)]), True
EDGES = [(3, [(0, 1), (1, 2), (0, 2)])]
DRAW = dag

def has_directed_cycle(n, edges):
    kept = set(range(n))
    while True:
        links = edges
        ends = [[b for a, b in links if a == node and b in kept] for node in range(n)]
        # wrong: drop = {node for node in kept if len(ends[node]) <= 1}
        drop = {node for node in kept if len(ends[node]) <= 0}
        if not drop:
            return bool(kept)
        kept -= drop

"""A graph has the nodes 0 to `n` - 1 (`n` is at least 1) and the undirected edges in the list `edges`, tuples (a, b) of
different nodes, no edge twice, not even as (b, a). Define `core_nodes(n, edges)`: the ascending list of the nodes that
remain when, as long as there are any, nodes with fewer than two edges to remaining nodes are removed."""
EXAMPLE = (4, [(0, 1), (1, 2), (2, 0), (3, 2)]), [0, 1, 2]
DRAW = lambda rng: (lambda n: (n, links(rng, n, n + 1)))(rng.randint(4, 7))

def core_nodes(n, edges):
    kept = set(range(n))
    while True:
        links = edges + [(b, a) for a, b in edges]
        ends = [[b for a, b in links if a == node and b in kept] for node in range(n)]
        # wrong: drop = {node for node in kept if len(ends[node]) <= 0}
        drop = {node for node in kept if len(ends[node]) <= 1}
        if not drop:
            return sorted(kept)
        kept -= drop

"""A directed graph has the nodes 0 to `n` - 1 (`n` is at least 1) and for each tuple (a, b) in the list `edges` an edge
from a to b, where a and b differ and no tuple stands there twice. Define `endless_nodes(n, edges)`: the ascending list
of the nodes from which one can walk without end along the edges, in their direction."""
EXAMPLE = (3, [(0, 1), (1, 0), (1, 2)]), [0, 1]
DRAW = digraph

def endless_nodes(n, edges):
    kept = set(range(n))
    while True:
        links = edges
        ends = [[b for a, b in links if a == node and b in kept] for node in range(n)]
        # wrong: drop = {node for node in kept if len(ends[node]) <= 1}
        drop = {node for node in kept if len(ends[node]) <= 0}
        if not drop:
            return sorted(kept)
        kept -= drop
