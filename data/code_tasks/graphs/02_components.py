DRAW = graph
EDGES = [(1, []), (4, []), (4, [(0, 1), (2, 3), (1, 2)]), (4, [(3, 2), (1, 0), (0, 3)])]

"""A graph has the nodes 0 to `n` - 1 (`n` is at least 1) and the undirected edges in the list `edges`, tuples (a, b) of
different nodes, no edge twice, not even as (b, a). Two nodes are connected if a path of edges leads from one to the
other; the largest sets of connected nodes are the components. Define `count_components(n, edges)`: the number of
components."""
EXAMPLE = (4, [(0, 1), (3, 1)]), 2

def count_components(n, edges):
    label = list(range(n))
    for a, b in edges:
        old, new = max(label[a], label[b]), min(label[a], label[b])
        # wrong: label[a] = label[b] = new
        label = [new if name == old else name for name in label]
    groups = [[node for node in range(n) if label[node] == name] for name in sorted(set(label))]
    return len(groups)

"""A graph has the nodes 0 to `n` - 1 (`n` is at least 1) and the undirected edges in the list `edges`, tuples (a, b) of
different nodes, no edge twice, not even as (b, a). Two nodes are connected if a path of edges leads from one to the
other; the largest sets of connected nodes are the components. Define `largest_component_size(n, edges)`: the number of
nodes of the largest component."""
EXAMPLE = (4, [(0, 1), (3, 1)]), 3

def largest_component_size(n, edges):
    label = list(range(n))
    for a, b in edges:
        old, new = max(label[a], label[b]), min(label[a], label[b])
        # wrong: label[a] = label[b] = new
        label = [new if name == old else name for name in label]
    groups = [[node for node in range(n) if label[node] == name] for name in sorted(set(label))]
    return max(map(len, groups))

"""A graph has the nodes 0 to `n` - 1 (`n` is at least 1) and the undirected edges in the list `edges`, tuples (a, b) of
different nodes, no edge twice, not even as (b, a). Two nodes are connected if a path of edges leads from one to the
other; the largest sets of connected nodes are the components. Define `list_components(n, edges)`: the list of the
components, each an ascending list of nodes, ordered by their smallest nodes."""
EXAMPLE = (4, [(0, 1), (3, 1)]), [[0, 1, 3], [2]]

def list_components(n, edges):
    label = list(range(n))
    for a, b in edges:
        old, new = max(label[a], label[b]), min(label[a], label[b])
        # wrong: label[a] = label[b] = new
        label = [new if name == old else name for name in label]
    groups = [[node for node in range(n) if label[node] == name] for name in sorted(set(label))]
    return groups

"""A graph has the nodes 0 to `n` - 1 (`n` is at least 1) and the undirected edges in the list `edges`, tuples (a, b) of
different nodes, no edge twice, not even as (b, a). Two nodes are connected if a path of edges leads from one to the
other; the largest sets of connected nodes are the components. Define `count_connected_pairs(n, edges)`: the number of
pairs of nodes a < b that are connected."""
EXAMPLE = (4, [(0, 1), (3, 1)]), 3

def count_connected_pairs(n, edges):
    label = list(range(n))
    for a, b in edges:
        old, new = max(label[a], label[b]), min(label[a], label[b])
        # wrong: label[a] = label[b] = new
        label = [new if name == old else name for name in label]
    groups = [[node for node in range(n) if label[node] == name] for name in sorted(set(label))]
    return sum(len(group) * (len(group) - 1) // 2 for group in groups)
