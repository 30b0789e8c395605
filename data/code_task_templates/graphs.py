"""Tasks about graphs, trees and grids of cells: reachability, distances, orders, components."""

from random import Random

from .common import Family, blocked, lines, links, variant

SIMPLE = ("A graph has the nodes 0 to `n` - 1 (`n` is at least 1) and the undirected edges in the list `edges`, tuples "
          "(a, b) of different nodes, no edge twice, not even as (b, a). ")  # fmt: skip
DIRECTED = ("A directed graph has the nodes 0 to `n` - 1 (`n` is at least 1) and for each tuple (a, b) in the "
            "list `edges` an edge "
            "from a to b, where a and b differ and no tuple stands there twice. ")  # fmt: skip


def graph(rng: Random) -> tuple:
    """Number of nodes, and undirected edges."""
    n = rng.randint(3, 7)
    return n, links(rng, n, rng.randint(n - 2, n + 1))


def digraph(rng: Random) -> tuple:
    """Number of nodes, and directed edges."""
    n = rng.randint(3, 6)
    return n, links(rng, n, rng.randint(n - 1, n + 2), ordered=True)


def dag(rng: Random) -> tuple:
    """Number of nodes, and directed edges that mostly form no cycle."""
    n = rng.randint(3, 6)
    names = rng.sample(range(n), n)
    found = [tuple(sorted(pair)) for pair in links(rng, n, rng.randint(n - 1, n + 2))]
    if rng.random() < 0.25:
        found = found[:-1] + [found[0][::-1]]
    return n, list(dict.fromkeys((names[a], names[b]) for a, b in found))


def weighted(rng: Random) -> tuple:
    """Number of nodes, and undirected edges with lengths."""
    n, edges = graph(rng)
    return n, [(a, b, rng.randint(1, 9)) for a, b in edges]


def parents(rng: Random) -> tuple:
    """A tree: the parent of each node, -1 for the root 0."""
    return ([-1] + [rng.randint(max(0, i - 3), i - 1) for i in range(1, rng.randint(3, 9))],)


def maze(rng: Random) -> tuple:
    """Rows of text of . and #."""
    columns = rng.randint(2, 5)
    return (["".join(".#"[cell] for cell in row) for row in blocked(rng, rng.randint(2, 4), columns, 0.35)],)


FAMILIES = [
    Family(
        "degrees",
        SIMPLE + "Define `$f(n, edges)`: $what.",
        """
def $f(n, edges):
    degrees = [0] * n
    for a, b in edges:
        degrees[a] += 1
        degrees[b] += 1
    return $result
""",
        {"$result": "$bad"},
        graph,
        [
            variant(
                (3, [(0, 1), (2, 1)]),
                [1, 2, 1],
                f="node_degrees",
                what="the list of the numbers of edges at the nodes 0 to n - 1",
                result="degrees",
                bad="[degree for degree in degrees if degree]",
            ),
            variant(
                (4, [(0, 1), (2, 1)]),
                1,
                f="busiest_node",
                what="the node with the most edges, the smallest such node if several tie",
                result="degrees.index(max(degrees))",
                bad="n - 1 - degrees[::-1].index(max(degrees))",
            ),
            variant(
                (4, [(0, 1), (2, 1)]),
                [0, 2],
                f="leaves",
                what="the ascending list of the nodes with exactly one edge",
                result="[node for node in range(n) if degrees[node] == 1]",
                bad="[node for node in range(n) if degrees[node] <= 1]",
            ),
            variant(
                (4, [(0, 1), (2, 1)]),
                False,
                f="is_regular",
                what="`True` if all nodes have equally many edges, else `False`",
                result="len(set(degrees)) == 1",
                bad="len(set(degrees) - {0}) <= 1",
                edges=((3, [(0, 1), (1, 2), (2, 0)]), (3, [(0, 1)]), (4, [(0, 1), (3, 2)])),
            ),
        ],
        edges=((1, []), (3, []), (2, [(1, 0)]), (3, [(0, 1)])),
    ),
    Family(
        "components",
        SIMPLE
        + "Two nodes are connected if a path of edges leads from one to the other; the largest sets of connected "
        "nodes are the components. Define `$f(n, edges)`: $what.",
        """
def $f(n, edges):
    label = list(range(n))
    for a, b in edges:
        old, new = max(label[a], label[b]), min(label[a], label[b])
        label = [new if name == old else name for name in label]
    groups = [[node for node in range(n) if label[node] == name] for name in sorted(set(label))]
    return $result
""",
        {"label = [new if name == old else name for name in label]": "label[a] = label[b] = new"},
        graph,
        [
            variant(
                (4, [(0, 1), (3, 1)]), 2, f="count_components", what="the number of components", result="len(groups)"
            ),
            variant(
                (4, [(0, 1), (3, 1)]),
                3,
                f="largest_component_size",
                what="the number of nodes of the largest component",
                result="max(map(len, groups))",
            ),
            variant(
                (4, [(0, 1), (3, 1)]),
                [[0, 1, 3], [2]],
                f="list_components",
                result="groups",
                what="the list of the components, each an ascending list of nodes, ordered by their smallest nodes",
            ),
            variant(
                (4, [(0, 1), (3, 1)]),
                3,
                f="count_connected_pairs",
                what="the number of pairs of nodes a < b that are connected",
                result="sum(len(group) * (len(group) - 1) // 2 for group in groups)",
            ),
        ],
        edges=((1, []), (4, []), (4, [(0, 1), (2, 3), (1, 2)]), (4, [(3, 2), (1, 0), (0, 3)])),
    ),
    Family(
        "hops",
        "${graph}The distance from one node to another is the least number of edges on a path between them$along. "
        "Define `$f(n, edges$more)`: $what.",
        """
from collections import deque


def $f(n, edges$more):
    distance = {$source: 0}
    queue = deque([$source])
    while queue:
        node = queue.popleft()
        for a, b in edges$both:
            if a == node and b not in distance:
                distance[b] = distance[a] + 1
                queue.append(b)
    return $result
""",
        {"edges$both": "edges$bad"},
        lambda rng: graph(rng),
        [
            variant(
                (4, [(0, 1), (1, 2)]),
                [0, 1, 2, -1],
                f="distances_from_zero",
                graph=SIMPLE,
                along="",
                more="",
                source="0",
                both=" + [(b, a) for a, b in edges]",
                bad="",
                result="[distance.get(node, -1) for node in range(n)]",
                what="the list of the distances of the nodes 0 to n - 1 from node 0, -1 for those that cannot be "
                "reached",
            ),
            variant(
                (4, [(0, 1), (1, 2)], 2, 0),
                2,
                f="hops_between",
                graph=SIMPLE,
                along="",
                more=", start, goal",
                source="start",
                both=" + [(b, a) for a, b in edges]",
                bad="",
                result="distance.get(goal)",
                what="the distance from node `start` to node `goal`, 0 if they are the same, `None` if there is "
                "no path",
                edges=((2, [], 0, 1), (2, [], 1, 1), (4, [(0, 1), (1, 2), (2, 3), (3, 0)], 0, 3)),
                draw=lambda rng: (lambda n, edges: (n, edges, rng.randrange(n), rng.randrange(n)))(*graph(rng)),
            ),
            variant(
                (4, [(0, 1), (1, 2), (3, 0)]),
                [0, 1, 2, -1],
                f="directed_distances",
                graph=DIRECTED,
                along=", followed in their direction",
                more="",
                source="0",
                both="",
                bad=" + [(b, a) for a, b in edges]",
                result="[distance.get(node, -1) for node in range(n)]",
                draw=digraph,
                what="the list of the distances from node 0 to the nodes 0 to n - 1, -1 for those that cannot be "
                "reached",
            ),
            variant(
                (4, [(0, 1), (1, 2)]),
                2,
                f="farthest_from_zero",
                graph=SIMPLE,
                along="",
                more="",
                source="0",
                both=" + [(b, a) for a, b in edges]",
                bad="",
                result="min(distance, key=lambda node: (-distance[node], node))",
                what="the node with the greatest distance from node 0 among those that can be reached, the "
                "smallest such "
                "node if several tie",
            ),
        ],
        edges=(),
    ),
    Family(
        "bipartite",
        SIMPLE + "Define `$f(n, edges)`: $what.",
        """
def $f(n, edges):
    colour = {}
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
    if any(colour[a] == colour[b] for a, b in edges):
        return $impossible
    return $result
""",
        {
            "for start in range(n):": "for start in range(1):",
            "    if any(colour[a] == colour[b] for a, b in edges)": "    if any(colour.get(a) == colour.get(b) "
            "for a, b in edges)",
            "$result": "$bad",
        },
        graph,
        [
            variant(
                (3, [(0, 1), (1, 2)]),
                True,
                f="is_bipartite",
                impossible="False",
                result="True",
                bad="True",
                what="`True` if the nodes can be coloured black and white so that every edge joins a black and a white "
                "node, else `False`",
                edges=((4, [(2, 3)]), (6, [(3, 4), (4, 5), (5, 3)]), (5, [(0, 1), (3, 4)])),
            ),
            variant(
                (4, [(0, 1), (1, 2)]),
                [0, 1, 0, 0],
                f="two_colouring",
                impossible="None",
                result="[colour[node] for node in range(n)]",
                bad="[colour.get(node, 1) for node in range(n)]",
                what="the list of colours 0 and 1 of the nodes 0 to n - 1 such that every edge joins nodes of "
                "different "
                "colours and the smallest node of every connected component has colour 0; `None` if there is no such "
                "colouring",
            ),
        ],
        edges=((1, []), (3, [(0, 1), (1, 2), (0, 2)]), (4, [(0, 1), (1, 2), (2, 3), (3, 0)])),
    ),
    Family(
        "order_of_tasks",
        DIRECTED + "An edge from a to b says that a must come before b. Define `$f(n, edges)`: $what.",
        """
def $f(n, edges):
    order, rounds = [], 0
    while len(order) < n:
        ready = [node for node in range(n) if node not in order and all(a in order for a, b in edges if b == node)]
        if not ready:
            return $impossible
        order += $take
        rounds += 1
    return $result
""",
        {"order += $take": "order += $bad", "return $impossible": "return $bad_impossible"},
        dag,
        [
            variant(
                (3, [(2, 0)]),
                [1, 2, 0],
                f="smallest_order",
                impossible="[]",
                bad_impossible="[]",
                take="ready[:1]",
                bad="ready",
                result="order",
                what="the lexicographically smallest list of all nodes that respects this (at "
                "each place the smallest node that may come next), `[]` if there is none",
            ),
            variant(
                (3, [(2, 0)]),
                [2, 1, 0],
                f="largest_order",
                impossible="None",
                bad_impossible="None",
                take="ready[-1:]",
                bad="ready[::-1]",
                result="order",
                what="the lexicographically largest list of all nodes that respects this "
                "(at each place the largest node that may come next), `None` if there is none",
            ),
            variant(
                (3, [(2, 0)]),
                2,
                f="count_rounds",
                impossible="-1",
                bad_impossible="-1",
                take="ready",
                bad="ready[:1]",
                result="rounds",
                what="the least number of rounds in which all nodes can be done if in each round any "
                "number of nodes are done at once, each after all that must come before it were done in earlier "
                "rounds; -1 "
                "if it is impossible",
            ),
            variant(
                (3, [(2, 0), (0, 2)]),
                False,
                f="has_order",
                impossible="False",
                bad_impossible="len(order) > 0",
                take="ready",
                bad="ready",
                result="True",
                what="`True` if the nodes can be put into an order that respects this, else `False`",
                edges=((3, [(0, 1), (1, 0)]), (4, [(3, 0), (0, 1), (1, 2), (2, 0)])),
                draw=digraph,
            ),
        ],
        edges=((1, []), (3, []), (2, [(1, 0)]), (3, [(0, 1), (1, 2), (2, 0)]), (4, [(3, 0), (0, 1)])),
    ),
    Family(
        "cycles",
        "${graph}Define `$f(n, edges)`: $what.",
        """
def $f(n, edges):
    kept = set(range(n))
    while True:
        links = edges$both
        ends = [[b for a, b in links if a == node and b in kept] for node in range(n)]
        drop = {node for node in kept if len(ends[node]) <= $limit}
        if not drop:
            return $result
        kept -= drop
""",
        {"<= $limit": "<= $bad"},
        graph,
        [
            variant(
                (4, [(0, 1), (1, 2), (2, 0)]),
                True,
                f="has_cycle",
                graph=SIMPLE,
                limit="1",
                bad="0",
                result="bool(kept)",
                both=" + [(b, a) for a, b in edges]",
                edges=((3, [(0, 1), (1, 2)]),),
                what="`True` if some path leads along at least three different edges back to its start without "
                "using an "
                "edge twice, else `False`",
            ),
            variant(
                (3, [(0, 1), (1, 0), (2, 0)]),
                True,
                f="has_directed_cycle",
                graph=DIRECTED,
                limit="0",
                bad="1",
                result="bool(kept)",
                both="",
                draw=dag,
                edges=((3, [(0, 1), (1, 2), (0, 2)]),),
                what="`True` if some path along the edges, in their direction, leads back to its start, else `False`",
            ),
            variant(
                (4, [(0, 1), (1, 2), (2, 0), (3, 2)]),
                [0, 1, 2],
                f="core_nodes",
                graph=SIMPLE,
                limit="1",
                bad="0",
                both=" + [(b, a) for a, b in edges]",
                result="sorted(kept)",
                what="the ascending list of the nodes that remain when, as long as there are any, nodes with "
                "fewer than two "
                "edges to remaining nodes are removed",
                draw=lambda rng: (lambda n: (n, links(rng, n, n + 1)))(rng.randint(4, 7)),
            ),
            variant(
                (3, [(0, 1), (1, 0), (1, 2)]),
                [0, 1],
                f="endless_nodes",
                graph=DIRECTED,
                limit="0",
                bad="1",
                both="",
                result="sorted(kept)",
                what="the ascending list of the nodes from which one can walk without end along the "
                "edges, in their direction",
                draw=digraph,
            ),
        ],
        edges=((1, []), (3, [])),
    ),
    Family(
        "tree_check",
        SIMPLE + "Define `$f(n, edges)`: $what.",
        """
def $f(n, edges):
    reached = {0}
    for _ in range(n):
        reached |= {b for a, b in edges if a in reached} | {a for a, b in edges if b in reached}
    return $result
""",
        {"$result": "$bad"},
        lambda rng: (lambda n: (n, links(rng, n, rng.choice([n - 1, n - 1, n]))))(rng.randint(3, 5)),
        [
            variant(
                (3, [(0, 1), (1, 2)]),
                True,
                f="is_tree",
                result="len(reached) == n and len(edges) == n - 1",
                bad="len(edges) == n - 1",
                what="`True` if it is a tree, that is connected and without a cycle, else `False`",
                edges=((4, [(0, 1), (1, 2), (2, 0)]), (4, [(0, 1), (1, 2), (2, 3), (3, 0)])),
            ),
            variant(
                (3, [(0, 1)]),
                False,
                f="is_connected",
                result="len(reached) == n",
                bad="len(edges) >= n - 1",
                what="`True` if every node can be reached from node 0, else `False`",
                edges=((4, [(0, 1), (1, 2), (2, 0)]), (4, [(3, 0), (3, 1), (3, 2)])),
            ),
            variant(
                (4, [(0, 1), (2, 3)]),
                [2, 3],
                f="cut_off_nodes",
                result="[node for node in range(n) if node not in reached]",
                bad="[node for node in range(n) if all(node not in edge for edge in edges)]",
                what="the ascending list of the nodes that cannot be reached from node 0",
                edges=((5, [(1, 2), (3, 4)]),),
            ),
        ],
        edges=((1, []), (2, []), (2, [(0, 1)])),
    ),
    Family(
        "shortest_route",
        "A road map has the towns 0 to `n` - 1 (`n` is at least 1) and the list `roads` of tuples (a, b, length): "
        "roads of "
        "positive integer length between different towns, $direction. Define `$f(n, roads$more)`: $what.",
        """
from heapq import heappop, heappush


def $f(n, roads$more):
    best = {}
    heap = [($zero, $source, [$source])]
    while heap:
        length, town, path = heappop(heap)
        if town in best:
            continue
        best[town] = (length, path)
        for a, b, road in roads$both:
            if a == town and b not in best:
                heappush(heap, ($total, b, path + [b]))
    return $result
""",
        {"        if town in best:\n            continue\n": "", "$total, b": "$bad, b"},
        weighted,
        [
            variant(
                (4, [(0, 1, 5), (1, 2, 1), (2, 0, 2)]),
                [0, 3, 2, -1],
                f="lengths_from_zero",
                more="",
                source="0",
                zero="0",
                direction="usable in both directions",
                both=" + [(b, a, road) for a, b, road in roads]",
                bad="road",
                total="length + road",
                result="[best[town][0] if town in best else -1 for town in range(n)]",
                what="the list of the least total lengths of routes from town 0 to the towns 0 to n - 1, -1 for "
                "those that "
                "cannot be reached",
            ),
            variant(
                (3, [(0, 1, 5), (1, 2, 1), (2, 0, 2)]),
                6,
                f="one_way_length",
                more="",
                source="0",
                zero="0",
                both="",
                direction="usable only from a to b",
                bad="road",
                total="length + road",
                result="best[n - 1][0] if n - 1 in best else None",
                what="the least total length of a route from town 0 to town n - 1, `None` if there is none",
                draw=lambda rng: (lambda n: (n, [(a, b, rng.randint(1, 9)) for a, b in links(rng, n, 2 * n, True)]))(
                    rng.randint(3, 5)
                ),
            ),
            variant(
                (4, [(0, 1, 5), (1, 3, 4), (2, 0, 2), (2, 3, 7)]),
                [0, 1, 3],
                f="smallest_shortest_route",
                more="",
                source="0",
                zero="0",
                direction="usable in both directions, at most one between two towns",
                bad="road",
                both=" + [(b, a, road) for a, b, road in roads]",
                total="length + road",
                result="best[n - 1][1] if n - 1 in best else []",
                what="the list of the towns on the shortest route from town 0 to town n - 1, both included; if several "
                "tie, the lexicographically smallest list; `[]` if there is none",
            ),
            variant(
                (3, [(0, 1, 5), (1, 2, 3), (2, 0, 7)]),
                5,
                f="smoothest_route",
                more="",
                source="0",
                zero="0",
                direction="usable in both directions",
                both=" + [(b, a, road) for a, b, road in roads]",
                total="max(length, road)",
                bad="road",
                result="best[n - 1][0] if n - 1 in best else None",
                what="the least number m such that a route from town 0 to town n - 1 uses only roads of length at "
                "most m; 0 "
                "if n is 1, `None` if there is no route",
            ),
        ],
        edges=(
            (1, []),
            (2, []),
            (2, [(0, 1, 3)]),
            (3, [(0, 2, 9), (0, 1, 2), (1, 2, 3)]),
            (4, [(0, 1, 1), (0, 2, 1), (1, 3, 4), (2, 3, 4)]),
        ),
        oracle="""
def $f(n, roads):
    found = []

    def walk(path, length):
        found.append((length, path))
        for a, b, road in roads$both:
            if a == path[-1] and b not in path:
                walk(path + [b], $total)

    walk([0], 0)
    ends = {town: min(item for item in found if item[1][-1] == town) for town in {item[1][-1] for item in found}}
    if "$f" == "lengths_from_zero":
        return [ends[town][0] if town in ends else -1 for town in range(n)]
    if "$f" == "smallest_shortest_route":
        return ends[n - 1][1] if n - 1 in ends else []
    return ends[n - 1][0] if n - 1 in ends else None
""",
    ),
    Family(
        "spanning_tree",
        "A network has the nodes 0 to `n` - 1 (`n` is at least 1) and the list `cables` of tuples (a, b, cost): "
        "possible cables "
        "between different nodes with positive integer costs. Define `$f(n, cables)`: $what.",
        """
def $f(n, cables):
    label = list(range(n))
    costs = []
    for a, b, cost in $order:
        if label[a] != label[b]:
            costs.append(cost)
            label = [label[a] if name == label[b] else name for name in label]
    return $result
""",
        {"in $order:": "in $bad:"},
        weighted,
        [
            variant(
                (3, [(0, 1, 4), (1, 2, 2), (2, 0, 3)]),
                5,
                f="cheapest_network",
                bad="cables",
                order="sorted(cables, key=lambda cable: cable[2])",
                result="sum(costs) if len(costs) == n - 1 else -1",
                what="the least total cost of cables that connect all nodes with each other, directly or by way "
                "of others; "
                "-1 if that is impossible",
            ),
            variant(
                (3, [(0, 1, 4), (1, 2, 2), (2, 0, 3)]),
                3,
                f="dearest_needed_cable",
                bad="cables",
                order="sorted(cables, key=lambda cable: cable[2])",
                result="max(costs, default=0) if len(costs) == n - 1 else None",
                what="the least number m such that the cables of cost at most m connect all nodes with each "
                "other, directly "
                "or by way of others; 0 if n is 1, `None` if no cables do",
            ),
            variant(
                (3, [(0, 1, 4), (1, 2, 2), (2, 0, 3)]),
                7,
                f="dearest_tree",
                bad="cables",
                order="sorted(cables, key=lambda cable: -cable[2])",
                result="sum(costs) if len(costs) == n - 1 else -1",
                what="the greatest total cost of n - 1 cables that connect all nodes with each other, directly or "
                "by way of "
                "others; -1 if that is impossible",
            ),
        ],
        edges=((1, []), (2, []), (2, [(0, 1, 7)]), (3, [(0, 1, 9), (0, 2, 1), (2, 1, 1)])),
    ),
    Family(
        "rooted_tree",
        "A tree is given as the list `parents`: entry i is the parent of node i, and -1 for the root. Define "
        "`$f(parents$more)`: "
        "$what.",
        """
def $f(parents$more):
    def ancestors(node):
        chain = [node]
        while parents[chain[-1]] != -1:
            chain.append(parents[chain[-1]])
        return chain

    return $result
""",
        {"$result": "$bad"},
        parents,
        [
            variant(
                ([-1, 0, 0, 2],),
                2,
                f="tree_height",
                more="",
                what="the greatest number of edges between the root and a node",
                result="max(len(ancestors(node)) for node in range(len(parents))) - 1",
                bad="len(ancestors(len(parents) - 1)) - 1",
                edges=(([1, -1, 0],),),
            ),
            variant(
                ([-1, 0, 0, 2],),
                [4, 1, 2, 1],
                f="subtree_sizes",
                more="",
                bad="[parents.count(node) + 1 for node in range(len(parents))]",
                what="the list that has for each node the number of nodes in its subtree: itself, "
                "its children, their children and so on",
                result="[sum(node in ancestors(other) for other in range(len(parents))) for node in "
                "range(len(parents))]",
            ),
            variant(
                ([-1, 0, 0, 2], 1, 3),
                0,
                f="lowest_common_ancestor",
                more=", a, b",
                bad="parents[a] if a != b else a",
                result="next(node for node in ancestors(a) if node in ancestors(b))",
                what="the node farthest from the root that is an ancestor of both node `a` and node `b`, where "
                "every node "
                "is also an ancestor of itself",
                edges=(([-1], 0, 0), ([-1, 0, 1], 2, 1), ([-1, 0, 0], 1, 2)),
                draw=lambda rng: (lambda tree: (tree, rng.randrange(len(tree)), rng.randrange(len(tree))))(
                    *parents(rng)
                ),
            ),
            variant(
                ([-1, 0, 0, 2],),
                [1, 3],
                f="tree_leaves",
                more="",
                bad="[node for node in range(1, len(parents)) if node > max(parents)]",
                result="[node for node in range(len(parents)) if node not in parents]",
                what="the ascending list of the nodes without children",
            ),
        ],
        edges=(),
    ),
    Family(
        "islands",
        "`grid` is a list of texts of equal length, made of `.` and `#`. $near Define `$f(grid)`: $what.",
        """
def $f(grid):
    rest = {(i, j) for i, row in enumerate(grid) for j, cell in enumerate(row) if cell == "$land"}
    islands = []
    while rest:
        stack = [rest.pop()]
        island = set(stack)
        while stack:
            i, j = stack.pop()
            steps = $steps
            near = {(i + a, j + b) for a, b in steps} & rest
            rest -= near
            island |= near
            stack += near
        islands.append(island)
    return $result
""",
        {"steps = $steps": "steps = $bad"},
        maze,
        [
            variant(
                ([".#", "#."],),
                2,
                f="count_islands",
                land="#",
                steps="((0, 1), (1, 0), (0, -1), (-1, 0))",
                bad="((0, 1), (1, 0))",
                result="len(islands)",
                near="Two # belong to one island if steps up, down, left or right over # lead from one to the other.",
                what="the number of islands, 0 if there is no #",
            ),
            variant(
                ([".#", "#."],),
                1,
                f="count_islands_diagonal",
                land="#",
                steps="[(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)]",
                bad="((0, 1), (1, 0), (0, -1), (-1, 0))",
                near="Two # belong to one island if steps over # to any of the eight neighbouring cells lead from "
                "one to "
                "the other.",
                result="len(islands)",
                what="the number of islands, 0 if there is no #",
            ),
            variant(
                (["##", "#."],),
                3,
                f="largest_island",
                land="#",
                steps="((0, 1), (1, 0), (0, -1), (-1, 0))",
                bad="((0, 1), (1, 0))",
                result="max(map(len, islands), default=0)",
                near="Two # belong to one island if steps up, down, left or right over # lead from one to the other.",
                what="the number of # of the largest island, 0 if there is no #",
            ),
            variant(
                (["###", "#.#", "###"],),
                1,
                f="count_enclosed_lakes",
                land=".",
                bad="((0, 1), (1, 0), (0, -1))",
                steps="((0, 1), (1, 0), (0, -1), (-1, 0))",
                result="sum(all(0 < i < len(grid) - 1 and 0 < j < len(grid[0]) - 1 for i, j in island) for island "
                "in islands)",
                near="Two `.` belong to one lake if steps up, down, left or right over `.` lead from one to the other.",
                what="the number of lakes that have no cell in the first or last row or the first or last column",
                edges=(
                    (["####", "#..#", "##.#", "####"],),
                    (["#####", "#.#.#", "#####", "#..##"],),
                    (["#####", "##..#", "#...#", "#####"],),
                    (["###", "#.#", "#.#"],),
                ),
                draw=lambda rng: (
                    (lambda rows: ["#######", *rows, "#######"])(
                        [
                            "#" + "".join(rng.choice("..##.") for _ in range(5)) + rng.choice("##.")
                            for _ in range(rng.randint(2, 4))
                        ]
                    ),
                ),
            ),
        ],
        edges=(([],), (["."],), (["#"],), (["#.#", "###", "#.#"],), (["###", "..#", "###"],), ([".#.", "##.", "..#"],)),
    ),
    Family(
        "maze",
        "`grid` is a non-empty list of texts of equal positive length, in which `.` is free and `#` a wall. A "
        "walk goes over free "
        "cells, in each step $moves. Define `$f(grid)`: $what.",
        """
from collections import deque


def $f(grid):
    rows, columns = len(grid), len(grid[0])
    steps = {(0, 0): 0} if grid[0][0] == "." else {}
    queue = deque(steps)
    while queue:
        i, j = queue.popleft()
        for a, b in $moves_list:
            k, m = i + a, j + b
            if 0 <= k < rows and 0 <= m < columns and grid[k][m] == "." and (k, m) not in steps:
                steps[k, m] = steps[i, j] + 1
                queue.append((k, m))
    return $result
""",
        {"in $moves_list": "in $bad"},
        lambda rng: (["." + row[1:] if i == 0 else row for i, row in enumerate(maze(rng)[0])],),
        [
            variant(
                ([".#", ".."],),
                2,
                f="shortest_walk",
                moves="one cell up, down, left or right",
                bad="((0, 1), (1, 0))",
                moves_list="((0, 1), (1, 0), (0, -1), (-1, 0))",
                result="steps.get((rows - 1, columns - 1), -1)",
                what="the least number of steps from the top left to the bottom right cell, -1 if there is no "
                "such walk (or "
                "one of the two is a wall)",
                edges=(([".#...", ".#.#.", "...#."],),),
            ),
            variant(
                ([".#", ".."],),
                1,
                f="shortest_walk_diagonal",
                moves="to one of the eight neighbouring cells (also diagonally between two walls)",
                bad="((0, 1), (1, 0), (0, -1), (-1, 0))",
                moves_list="[(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)]",
                edges=(([".#", "#."],),),
                result="steps.get((rows - 1, columns - 1), -1)",
                what="the least number of steps from the top left to the bottom right cell, -1 if there is no "
                "such walk (or "
                "one of the two is a wall)",
            ),
            variant(
                ([".#", ".."],),
                3,
                f="count_reachable",
                moves="one cell up, down, left or right",
                bad="((0, 1), (1, 0))",
                moves_list="((0, 1), (1, 0), (0, -1), (-1, 0))",
                result="len(steps)",
                what="the number of cells that a walk from the top left cell can reach, that cell included; 0 if "
                "it is a "
                "wall",
                edges=(([".#...", ".#.#.", "...#."],),),
            ),
            variant(
                ([".#.", "..."],),
                1,
                f="reachable_by_knight",
                bad="[(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)]",
                moves="like a knight in chess (two cells in one direction and one at a right angle to it, over "
                "walls if "
                "need be), ending on a free cell",
                result="len(steps) - 1 if steps else 0",
                moves_list="[(a, b) for a in (-2, -1, 1, 2) for b in (-2, -1, 1, 2) if abs(a) != abs(b)]",
                what="the number of free cells other than the top left one that a walk from the top left cell can "
                "reach; 0 "
                "if that one is a wall",
            ),
        ],
        edges=((["."],), (["#"],), (["...", "##.", "..."],), (["..#", "#.."],), (["...", "...", "..."],)),
    ),
    Family(
        "friends",
        "A network of friends is the dictionary `friends` that maps each name to the list of the names of the "
        "friends of that "
        "person; friendship is mutual, and every name that occurs is a key. Define `$f(friends, name)`: $what.",
        """
def $f(friends, name):
    near = set(friends[name])
    second = {other for friend in near for other in friends[friend]} - near - {name}
    return $result
""",
        {"$result": "$bad"},
        lambda rng: (
            lambda names, pairs, i: (
                {name: [names[b if a == j else a] for a, b in pairs if j in (a, b)] for j, name in enumerate(names)},
                names[i],
            )
        )(
            *(lambda n: (["Al", "Bo", "Cy", "Di", "Ed", "Fay"][:n], links(rng, n, n + 1), rng.randrange(n)))(
                rng.randint(4, 6)
            )
        ),
        [
            variant(
                ({"Al": ["Bo"], "Bo": ["Al", "Cy"], "Cy": ["Bo"]}, "Al"),
                ["Cy"],
                f="friends_of_friends",
                result="sorted(second)",
                bad="sorted(second | near)",
                what="the alphabetical list of the friends of friends of `name` who are neither friends of `name` "
                "nor `name`",
            ),
            variant(
                ({"Al": ["Bo"], "Bo": ["Al", "Cy"], "Cy": ["Bo"]}, "Al"),
                "Cy",
                f="suggest_friend",
                result="min(second, key=lambda other: (-len(near & set(friends[other])), other), default=None)",
                bad="min(second, default=None)",
                what="among the friends of friends who are neither friends of `name` nor `name`, the one who "
                "shares most "
                "friends with `name`, the alphabetically first if several tie, `None` if there are none",
                edges=(({"A": ["B", "C"], "B": ["A", "D", "X"], "C": ["A", "X"], "D": ["B"], "X": ["B", "C"]}, "A"),),
            ),
            variant(
                ({"Al": ["Bo", "Cy"], "Bo": ["Al", "Cy"], "Cy": ["Bo", "Al"]}, "Al"),
                1,
                f="count_triangles_at",
                result="sum(a < b and b in friends[a] for a in near for b in near)",
                bad="sum(b in friends[a] for a in near for b in near)",
                what="the number of pairs of friends of `name` who are friends of each other",
            ),
        ],
        edges=(
            ({"Al": []}, "Al"),
            ({"Al": ["Bo"], "Bo": ["Al"]}, "Bo"),
            ({"A": ["B"], "B": ["A", "C"], "C": ["B"]}, "B"),
        ),
    ),
    Family(
        "matrix_of_links",
        "A directed graph is given as the square matrix `links`, a list of rows: `links[a][b]` is 1 if there is "
        "an edge from a to "
        "b, else 0. There may be edges from a node to itself. Define `$f(links)`: $what.",
        """
def $f(links):
    nodes = range(len(links))
    return $result
""",
        {"$result": "$bad"},
        lambda rng: (blocked(rng, 3, 3, 0.45) if rng.random() < 0.5 else blocked(rng, 4, 4, 0.3),),
        [
            variant(
                ([[0, 1], [0, 1]],),
                [(0, 1), (1, 1)],
                f="list_edges",
                bad="[(b, a) for a in nodes for b in nodes if links[a][b]]",
                result="[(a, b) for a in nodes for b in nodes if links[a][b]]",
                what="the ascending list of the tuples (a, b) for which there is an edge from a to b",
            ),
            variant(
                ([[0, 1], [0, 1]],),
                1,
                f="find_sink",
                what="the node to which edges lead from all other nodes and from which "
                "none leads to another node (edges to itself do not matter), or -1 if there is none; a single "
                "node is one",
                result="next((b for b in nodes if all(links[a][b] and not links[b][a] for a in nodes if a != b)), -1)",
                bad="next((b for b in nodes if not any(links[b])), -1)",
                edges=(
                    ([[0, 0, 1], [1, 0, 1], [0, 0, 0]],),
                    ([[0, 1, 0], [0, 0, 0], [0, 1, 0]],),
                    ([[0, 1, 1], [0, 0, 1], [0, 0, 1]],),
                ),
                draw=lambda rng: (
                    [
                        [int(b == 2 or rng.random() < 0.4) if a != 2 else int(rng.random() < 0.2) for b in range(3)]
                        for a in range(3)
                    ],
                ),
            ),
            variant(
                ([[0, 1], [1, 1]],),
                [[1, 1], [1, 2]],
                f="count_two_step_walks",
                result="[[sum(links[a][c] * links[c][b] for c in nodes) for b in nodes] for a in nodes]",
                bad="[[int(any(links[a][c] and links[c][b] for c in nodes)) for b in nodes] for a in nodes]",
                what="the matrix, a list of rows, that has in row a and column b the number of nodes c with an "
                "edge from a to "
                "c and one from c to b",
            ),
            variant(
                ([[0, 1], [0, 0]],),
                [(0, 1)],
                f="one_way_links",
                bad="[(a, b) for a in nodes for b in nodes if links[a][b] != links[b][a]]",
                result="[(a, b) for a in nodes for b in nodes if links[a][b] and not links[b][a]]",
                what="the ascending list of the tuples (a, b) for which there is an edge from a to b but none "
                "from b to a",
            ),
        ],
        edges=(([[0]],), ([[1]],), ([[1, 1], [1, 1]],), ([[0, 0], [1, 0]],)),
    ),
    Family(
        "critical",
        SIMPLE + "Define `$f(n, edges)`: $what.",
        """
def $f(n, edges):
    def count(nodes, links):
        label = {node: node for node in nodes}
        for a, b in links:
            old, new = label[a], label[b]
            label = {node: new if name == old else name for node, name in label.items()}
        return len(set(label.values()))

    whole = count(range(n), edges)
    return $result
""",
        {"$result": "$bad"},
        graph,
        [
            variant(
                (4, [(1, 0), (1, 2), (2, 3), (3, 1)]),
                [(0, 1)],
                f="bridges",
                result="sorted((min(e), max(e)) for e in edges if count(range(n), [x for x in edges if x != e]) > "
                "whole)",
                bad="sorted((min(e), max(e)) for e in edges if min(sum(x in y for y in edges) for x in e) == 1)",
                edges=((6, [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (2, 3)]),),
                what="the ascending list of the edges whose removal cuts off nodes that were connected by a path "
                "before, "
                "each as a tuple with the smaller node first",
            ),
            variant(
                (4, [(1, 0), (1, 2), (2, 3), (3, 1)]),
                [1],
                f="cut_nodes",
                result="[v for v in range(n) if count(set(range(n)) - {v}, [e for e in edges if v not in e]) > whole]",
                bad="[v for v in range(n) if sum(v in e for e in edges) > 2]",
                what="the ascending list of the nodes without which (and without their edges) some other nodes, "
                "connected by "
                "a path before, are no longer connected",
                edges=((4, [(0, 1), (0, 2), (0, 3), (1, 2), (2, 3), (1, 3)]),),
            ),
            variant(
                (4, [(1, 0), (1, 2), (2, 3), (3, 1)]),
                1,
                f="count_spare_edges",
                result="len(edges) - (n - whole)",
                bad="max(0, len(edges) - (n - 1))",
                what="the greatest number of edges that can be removed together without cutting off nodes that were "
                "connected by a path before",
                edges=((6, [(0, 1), (1, 2), (2, 0), (3, 4)]),),
            ),
        ],
        edges=((1, []), (3, []), (3, [(0, 1), (2, 1)]), (3, [(0, 1), (1, 2), (0, 2)])),
    ),
    Family(
        "cities",
        "The first line of the input has two integers n (at least 1) and m (at least 0), separated by a space; m "
        "lines follow, each "
        "with two different numbers from 1 to n, separated by a space: a road between these two cities, usable in both "
        "directions. No road stands there twice. Write a program that prints $what.",
        """
n, m = map(int, input().split())
near = {city: set() for city in range(1, n + 1)}
for _ in range(m):
    a, b = map(int, input().split())
    near[a].add(b)
    near[b].add(a)
steps = {1: 0}
queue = [1]
for city in queue:
    for other in sorted(near[city]):
        if other not in steps:
            steps[other] = steps[city] + 1
            queue.append(other)
$show
""",
        {"$show": "$bad"},
        lambda rng: (lambda n, edges: lines((n, len(edges)), *((a + 1, b + 1) for a, b in edges)))(*graph(rng)),
        [
            variant(
                "3 1\n1 2\n",
                "2",
                show="print(len(steps))",
                bad="print(len(steps) - 1 or 1)",
                what="the number of cities that can be reached from city 1, city 1 included",
            ),
            variant(
                "3 1\n1 2\n",
                "0 1 -1",
                show="print(*(steps.get(city, -1) for city in near))",
                bad="print(*(steps.get(city, 0) for city in near))",
                what="one line with the least numbers of roads on the way from city 1 to the cities 1 to n, -1 "
                "for those that "
                "cannot be reached, separated by spaces",
            ),
            variant(
                "3 1\n1 2\n",
                "1: 2\n2: 1\n3: -",
                show='for city, others in near.items():\n    print(f"{city}:", *(sorted(others) or ["-"]))',
                bad='for city, others in near.items():\n    print(f"{city}:", *sorted(others))',
                what="for each of the cities 1 to n a line with its number, a colon and, each after a space, the "
                "cities to "
                "which it has a road in ascending order, or a single - after the space if it has none",
            ),
            variant(
                "3 1\n1 2\n",
                "IMPOSSIBLE",
                show='print(steps.get(n, "IMPOSSIBLE"))',
                bad="print(steps.get(n, 0))",
                what="the least number of roads on the way from city 1 to city n (0 if n is 1), or IMPOSSIBLE if "
                "there is no "
                "way",
                edges=("2 1\n2 1\n",),
            ),
        ],
        edges=("1 0\n", "4 3\n2 1\n3 2\n4 3\n"),
        stdio=True,
    ),
]
