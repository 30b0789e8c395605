DRAW = graph

"""A graph has the nodes 0 to `n` - 1 (`n` is at least 1) and the undirected edges in the list `edges`, tuples (a, b) of
different nodes, no edge twice, not even as (b, a). The distance from one node to another is the least number of edges
on a path between them. Define `distances_from_zero(n, edges)`: the list of the distances of the nodes 0 to n - 1 from
node 0, -1 for those that cannot be reached."""
EXAMPLE = (4, [(0, 1), (1, 2)]), [0, 1, 2, -1]

from collections import deque


def distances_from_zero(n, edges):
    distance = {0: 0}
    queue = deque([0])
    while queue:
        node = queue.popleft()
        # wrong: for a, b in edges:
        for a, b in edges + [(b, a) for a, b in edges]:
            if a == node and b not in distance:
                distance[b] = distance[a] + 1
                queue.append(b)
    return [distance.get(node, -1) for node in range(n)]

"""A graph has the nodes 0 to `n` - 1 (`n` is at least 1) and the undirected edges in the list `edges`, tuples (a, b) of
different nodes, no edge twice, not even as (b, a). The distance from one node to another is the least number of edges
on a path between them. Define `hops_between(n, edges, start, goal)`: the distance from node `start` to node `goal`, 0
if they are the same, `None` if there is no path."""
EXAMPLE = (4, [(0, 1), (1, 2)], 2, 0), 2
EDGES = [(2, [], 0, 1), (2, [], 1, 1), (4, [(0, 1), (1, 2), (2, 3), (3, 0)], 0, 3)]
DRAW = lambda rng: (lambda n, edges: (n, edges, rng.randrange(n), rng.randrange(n)))(*graph(rng))

from collections import deque


def hops_between(n, edges, start, goal):
    distance = {start: 0}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        # wrong: for a, b in edges:
        for a, b in edges + [(b, a) for a, b in edges]:
            if a == node and b not in distance:
                distance[b] = distance[a] + 1
                queue.append(b)
    return distance.get(goal)

"""A directed graph has the nodes 0 to `n` - 1 (`n` is at least 1) and for each tuple (a, b) in the list `edges` an edge
from a to b, where a and b differ and no tuple stands there twice. The distance from one node to another is the least
number of edges on a path between them, followed in their direction. Define `directed_distances(n, edges)`: the list of
the distances from node 0 to the nodes 0 to n - 1, -1 for those that cannot be reached."""
EXAMPLE = (4, [(0, 1), (1, 2), (3, 0)]), [0, 1, 2, -1]
DRAW = digraph

from collections import deque


def directed_distances(n, edges):
    distance = {0: 0}
    queue = deque([0])
    while queue:
        node = queue.popleft()
        # wrong: for a, b in edges + [(b, a) for a, b in edges]:
        for a, b in edges:
            if a == node and b not in distance:
                distance[b] = distance[a] + 1
                queue.append(b)
    return [distance.get(node, -1) for node in range(n)]

"""A graph has the nodes 0 to `n` - 1 (`n` is at least 1) and the undirected edges in the list `edges`, tuples (a, b) of
different nodes, no edge twice, not even as (b, a). The distance from one node to another is the least number of edges
on a path between them. Define `farthest_from_zero(n, edges)`: the node with the greatest distance from node 0 among
those that can be reached, the smallest such node if several tie."""
EXAMPLE = (4, [(0, 1), (1, 2)]), 2

from collections import deque


def farthest_from_zero(n, edges):
    distance = {0: 0}
    queue = deque([0])
    while queue:
        node = queue.popleft()
        # wrong: for a, b in edges:
        for a, b in edges + [(b, a) for a, b in edges]:
            if a == node and b not in distance:
                distance[b] = distance[a] + 1
                queue.append(b)
    return min(distance, key=lambda node: (-distance[node], node))
