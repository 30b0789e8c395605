DRAW = graph
EDGES = [(1, []), (3, [(0, 1), (1, 2), (0, 2)]), (4, [(0, 1), (1, 2), (2, 3), (3, 0)])]

"""A graph has the nodes 0 to `n` - 1 (`n` is at least 1) and the undirected edges in the list `edges`, tuples (a, b) of
different nodes, no edge twice, not even as (b, a). Define `is_bipartite(n, edges)`: `True` if the nodes can be coloured
black and white so that every edge joins a black and a white node, else `False`."""
EXAMPLE = (3, [(0, 1), (1, 2)]), True
EDGES = [(4, [(2, 3)]), (6, [(3, 4), (4, 5), (5, 3)]), (5, [(0, 1), (3, 4)])]

def is_bipartite(n, edges):
    colour = {}
    # wrong: for start in range(1):
    for start in range(n):
        if start in colour:
            continue
        colour[start] = 0
        stack = [start]
        while stack:
            node = stack.pop()
            for a, b in edges + [(b, a) for a, b in edges]:
                if a == node and b not in colour:
                    colour[b] = 1 - colour[a]
                    stack.append(b)
    # wrong: if any(colour.get(a) == colour.get(b) for a, b in edges):
    if any(colour[a] == colour[b] for a, b in edges):
        return False
    return True

"""A graph has the nodes 0 to `n` - 1 (`n` is at least 1) and the undirected edges in the list `edges`, tuples (a, b) of
different nodes, no edge twice, not even as (b, a). Define `two_colouring(n, edges)`: the list of colours 0 and 1 of the
nodes 0 to n - 1 such that every edge joins nodes of different colours and the smallest node of every connected
component has colour 0; `None` if there is no such colouring."""
EXAMPLE = (4, [(0, 1), (1, 2)]), [0, 1, 0, 0]

def two_colouring(n, edges):
    colour = {}
    # wrong: for start in range(1):
    for start in range(n):
        if start in colour:
            continue
        colour[start] = 0
        stack = [start]
        while stack:
            node = stack.pop()
            for a, b in edges + [(b, a) for a, b in edges]:
                if a == node and b not in colour:
                    colour[b] = 1 - colour[a]
                    stack.append(b)
    # wrong: if any(colour.get(a) == colour.get(b) for a, b in edges):
    if any(colour[a] == colour[b] for a, b in edges):
        return None
    # wrong: return [colour.get(node, 1) for node in range(n)]
    return [colour[node] for node in range(n)]
