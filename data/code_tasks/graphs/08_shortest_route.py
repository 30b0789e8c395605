import operator

DRAW = weighted
EDGES = [
    (1, []),
    (2, []),
    (2, [(0, 1, 3)]),
    (3, [(0, 2, 9), (0, 1, 2), (1, 2, 3)]),
    (4, [(0, 1, 1), (0, 2, 1), (1, 3, 4), (2, 3, 4)]),
]

def routes(n, roads, ways=(1, -1), total=operator.add):
    found, stack = {}, [([0], 0)]  # by the town where they end
    while stack:
        path, length = stack.pop()
        found.setdefault(path[-1], []).append((length, path))
        for *ends, road in roads:
            for a, b in (ends[::way] for way in ways):
                if a == path[-1] and b not in path:
                    stack.append((path + [b], total(length, road)))
    return [min(found.get(town, [(None, [])])) for town in range(n)]

"""A road map has the towns 0 to `n` - 1 (`n` is at least 1) and the list `roads` of tuples (a, b, length): roads of
positive integer length between different towns, usable in both directions. Define `lengths_from_zero(n, roads)`: the
list of the least total lengths of routes from town 0 to the towns 0 to n - 1, -1 for those that cannot be reached."""
EXAMPLE = (4, [(0, 1, 5), (1, 2, 1), (2, 0, 2)]), [0, 3, 2, -1]
ORACLE = lambda n, roads: [-1 if length is None else length for length, _ in routes(n, roads)]

from heapq import heappop, heappush


def lengths_from_zero(n, roads):
    best = {}
    heap = [(0, 0, [0])]
    while heap:
        length, town, path = heappop(heap)
        # wrong (2 lines):
        if town in best:
            continue
        best[town] = (length, path)
        for a, b, road in roads + [(b, a, road) for a, b, road in roads]:
            if a == town and b not in best:
                # wrong: heappush(heap, (road, b, path + [b]))
                heappush(heap, (length + road, b, path + [b]))
    return [best[town][0] if town in best else -1 for town in range(n)]

"""A road map has the towns 0 to `n` - 1 (`n` is at least 1) and the list `roads` of tuples (a, b, length): roads of
positive integer length between different towns, usable only from a to b. Define `one_way_length(n, roads)`: the least
total length of a route from town 0 to town n - 1, `None` if there is none."""
EXAMPLE = (3, [(0, 1, 5), (1, 2, 1), (2, 0, 2)]), 6
DRAW = lambda rng: (lambda n: (n, [(a, b, rng.randint(1, 9)) for a, b in links(rng, n, 2 * n, True)]))(
    rng.randint(3, 5)
)
ORACLE = lambda n, roads: routes(n, roads, ways=(1,))[-1][0]

from heapq import heappop, heappush


def one_way_length(n, roads):
    best = {}
    heap = [(0, 0, [0])]
    while heap:
        length, town, path = heappop(heap)
        # wrong (2 lines):
        if town in best:
            continue
        best[town] = (length, path)
        for a, b, road in roads:
            if a == town and b not in best:
                # wrong: heappush(heap, (road, b, path + [b]))
                heappush(heap, (length + road, b, path + [b]))
    return best[n - 1][0] if n - 1 in best else None

"""A road map has the towns 0 to `n` - 1 (`n` is at least 1) and the list `roads` of tuples (a, b, length): roads of
positive integer length between different towns, usable in both directions, at most one between two towns. Define
`smallest_shortest_route(n, roads)`: the list of the towns on the shortest route from town 0 to town n - 1, both
included; if several tie, the lexicographically smallest list; `[]` if there is none."""
EXAMPLE = (4, [(0, 1, 5), (1, 3, 4), (2, 0, 2), (2, 3, 7)]), [0, 1, 3]
ORACLE = lambda n, roads: routes(n, roads)[-1][1]

from heapq import heappop, heappush


def smallest_shortest_route(n, roads):
    best = {}
    heap = [(0, 0, [0])]
    while heap:
        length, town, path = heappop(heap)
        # wrong (2 lines):
        if town in best:
            continue
        best[town] = (length, path)
        for a, b, road in roads + [(b, a, road) for a, b, road in roads]:
            if a == town and b not in best:
                # wrong: heappush(heap, (road, b, path + [b]))
                heappush(heap, (length + road, b, path + [b]))
    return best[n - 1][1] if n - 1 in best else []

"""A road map has the towns 0 to `n` - 1 (`n` is at least 1) and the list `roads` of tuples (a, b, length): roads of
positive integer length between different towns, usable in both directions. Define `smoothest_route(n, roads)`: the
least number m such that a route from town 0 to town n - 1 uses only roads of length at most m; 0 if n is 1, `None` if
there is no route."""
EXAMPLE = (3, [(0, 1, 5), (1, 2, 3), (2, 0, 7)]), 5
ORACLE = lambda n, roads: routes(n, roads, total=max)[-1][0]

from heapq import heappop, heappush


def smoothest_route(n, roads):
    best = {}
    heap = [(0, 0, [0])]
    while heap:
        length, town, path = heappop(heap)
        # wrong (2 lines):
        if town in best:
            continue
        best[town] = (length, path)
        for a, b, road in roads + [(b, a, road) for a, b, road in roads]:
            if a == town and b not in best:
                # wrong: heappush(heap, (road, b, path + [b]))
                heappush(heap, (max(length, road), b, path + [b]))
    return best[n - 1][0] if n - 1 in best else None
