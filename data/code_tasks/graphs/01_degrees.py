DRAW = graph
EDGES = [(1, []), (3, []), (2, [(1, 0)]), (3, [(0, 1)])]

"""A graph has the nodes 0 to `n` - 1 (`n` is at least 1) and the undirected edges in the list `edges`, tuples (a, b) of
different nodes, no edge twice, not even as (b, a). Define `node_degrees(n, edges)`: the list of the numbers of edges at
the nodes 0 to n - 1."""
EXAMPLE = (3, [(0, 1), (2, 1)]), [1, 2, 1]

def node_degrees(n, edges):
    degrees = [0] * n
    for a, b in edges:
        degrees[a] += 1
        degrees[b] += 1
    # wrong: return [degree for degree in degrees if degree]
    return degrees

"""A graph has the nodes 0 to `n` - 1 (`n` is at least 1) and the undirected edges in the list `edges`, tuples (a, b) of
different nodes, no edge twice, not even as (b, a). Define `busiest_node(n, edges)`: the node with the most edges, the
smallest such node if several tie."""
EXAMPLE = (4, [(0, 1), (2, 1)]), 1

def busiest_node(n, edges):
    degrees = [0] * n
    for a, b in edges:
        degrees[a] += 1
        degrees[b] += 1
    # wrong: return n - 1 - degrees[::-1].index(max(degrees))
    return degrees.index(max(degrees))

"""A graph has the nodes 0 to `n` - 1 (`n` is at least 1) and the undirected edges in the list `edges`, tuples (a, b) of
different nodes, no edge twice, not even as (b, a). Define `leaves(n, edges)`: the ascending list of the nodes with
exactly one edge."""
EXAMPLE = (4, [(0, 1), (2, 1)]), [0, 2]

def leaves(n, edges):
    degrees = [0] * n
    for a, b in edges:
        degrees[a] += 1
        degrees[b] += 1
    # wrong: return [node for node in range(n) if degrees[node] <= 1]
    return [node for node in range(n) if degrees[node] == 1]

"""A graph has the nodes 0 to `n` - 1 (`n` is at least 1) and the undirected edges in the list `edges`, tuples (a, b) of
different nodes, no edge twice, not even as (b, a). Define `is_regular(n, edges)`: `True` if all nodes have equally many
edges, else `False`."""
EXAMPLE = (4, [(0, 1), (2, 1)]), False
EDGES = [(3, [(0, 1), (1, 2), (2, 0)]), (3, [(0, 1)]), (4, [(0, 1), (3, 2)])]

def is_regular(n, edges):
    degrees = [0] * n
    for a, b in edges:
        degrees[a] += 1
        degrees[b] += 1
    # wrong: return len(set(degrees) - {0}) <= 1
    return len(set(degrees)) == 1
