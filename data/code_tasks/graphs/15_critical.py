DRAW = graph
EDGES = [(1, []), (3, []), (3, [(0, 1), (2, 1)]), (3, [(0, 1), (1, 2), (0, 2)])]

"""A graph has the nodes 0 to `n` - 1 (`n` is at least 1) and the undirected edges in the list `edges`, tuples (a, b) of
different nodes, no edge twice, not even as (b, a). Define `bridges(n, edges)`: the ascending list of the edges whose
removal cuts off nodes that were connected by a path before, each as a tuple with the smaller node first."""
EXAMPLE = (4, [(1, 0), (1, 2), (2, 3), (3, 1)]), [(0, 1)]
EDGES = [(6, [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (2, 3)])]

def bridges(n, edges):
    def count(nodes, links):
        label = {node: node for node in nodes}
        for a, b in links:
            old, new = label[a], label[b]
            label = {node: new if name == old else name for node, name in label.items()}
        return len(set(label.values()))

    # wrong (2 lines): return sorted((min(e), max(e)) for e in edges if min(sum(x in y for y in edges) for x in e) == 1)
    whole = count(range(n), edges)
    return sorted((min(e), max(e)) for e in edges if count(range(n), [x for x in edges if x != e]) > whole)

"""A graph has the nodes 0 to `n` - 1 (`n` is at least 1) and the undirected edges in the list `edges`, tuples (a, b) of
different nodes, no edge twice, not even as (b, a). Define `cut_nodes(n, edges)`: the ascending list of the nodes
without which (and without their edges) some other nodes, connected by a path before, are no longer connected."""
EXAMPLE = (4, [(1, 0), (1, 2), (2, 3), (3, 1)]), [1]
EDGES = [(4, [(0, 1), (0, 2), (0, 3), (1, 2), (2, 3), (1, 3)])]

def cut_nodes(n, edges):
    def count(nodes, links):
        label = {node: node for node in nodes}
        for a, b in links:
            old, new = label[a], label[b]
            label = {node: new if name == old else name for node, name in label.items()}
        return len(set(label.values()))

    # wrong (2 lines): return [v for v in range(n) if sum(v in e for e in edges) > 2]
    whole = count(range(n), edges)
    return [v for v in range(n) if count(set(range(n)) - {v}, [e for e in edges if v not in e]) > whole]

"""A graph has the nodes 0 to `n` - 1 (`n` is at least 1) and the undirected edges in the list `edges`, tuples (a, b) of
different nodes, no edge twice, not even as (b, a). Define `count_spare_edges(n, edges)`: the greatest number of edges
that can be removed together without cutting off nodes that were connected by a path before."""
EXAMPLE = (4, [(1, 0), (1, 2), (2, 3), (3, 1)]), 1
EDGES = [(6, [(0, 1), (1, 2), (2, 0), (3, 4)])]

def count_spare_edges(n, edges):
    def count(nodes, links):
        label = {node: node for node in nodes}
        for a, b in links:
            old, new = label[a], label[b]
            label = {node: new if name == old else name for node, name in label.items()}
        return len(set(label.values()))

    # wrong (2 lines): return max(0, len(edges) - (n - 1))
    whole = count(range(n), edges)
    return len(edges) - (n - whole)
