DRAW = lambda rng: (blocked(rng, 3, 3, 0.45) if rng.random() < 0.5 else blocked(rng, 4, 4, 0.3),)
EDGES = [([[0]],), ([[1]],), ([[1, 1], [1, 1]],), ([[0, 0], [1, 0]],)]

"""A directed graph is given as the square matrix `links`, a list of rows: `links[a][b]` is 1 if there is an edge from a
to b, else 0. There may be edges from a node to itself. Define `list_edges(links)`: the ascending list of the tuples (a,
b) for which there is an edge from a to b."""
EXAMPLE = ([[0, 1], [0, 1]],), [(0, 1), (1, 1)]

def list_edges(links):
    nodes = range(len(links))
    # wrong: return [(b, a) for a in nodes for b in nodes if links[a][b]]
    return [(a, b) for a in nodes for b in nodes if links[a][b]]

"""A directed graph is given as the square matrix `links`, a list of rows: `links[a][b]` is 1 if there is an edge from a
to b, else 0. There may be edges from a node to itself. Define `find_sink(links)`: the node to which edges lead from all
other nodes and from which none leads to another node (edges to itself do not matter), or -1 if there is none; a single
node is one."""
EXAMPLE = ([[0, 1], [0, 1]],), 1
EDGES = [
    ([[0, 0, 1], [1, 0, 1], [0, 0, 0]],),
    ([[0, 1, 0], [0, 0, 0], [0, 1, 0]],),
    ([[0, 1, 1], [0, 0, 1], [0, 0, 1]],),
]
DRAW = lambda rng: (
    [[int(b == 2 or rng.random() < 0.4) if a != 2 else int(rng.random() < 0.2) for b in range(3)] for a in range(3)],
)

def find_sink(links):
    nodes = range(len(links))
    # wrong: return next((b for b in nodes if not any(links[b])), -1)
    return next((b for b in nodes if all(links[a][b] and not links[b][a] for a in nodes if a != b)), -1)

"""A directed graph is given as the square matrix `links`, a list of rows: `links[a][b]` is 1 if there is an edge from a
to b, else 0. There may be edges from a node to itself. Define `count_two_step_walks(links)`: the matrix, a list of
rows, that has in row a and column b the number of nodes c with an edge from a to c and one from c to b."""
EXAMPLE = ([[0, 1], [1, 1]],), [[1, 1], [1, 2]]

def count_two_step_walks(links):
    nodes = range(len(links))
    # wrong: return [[int(any(links[a][c] and links[c][b] for c in nodes)) for b in nodes] for a in nodes]
    return [[sum(links[a][c] * links[c][b] for c in nodes) for b in nodes] for a in nodes]

"""A directed graph is given as the square matrix `links`, a list of rows: `links[a][b]` is 1 if there is an edge from a
to b, else 0. There may be edges from a node to itself. Define `one_way_links(links)`: the ascending list of the tuples
(a, b) for which there is an edge from a to b but none from b to a."""
EXAMPLE = ([[0, 1], [0, 0]],), [(0, 1)]

def one_way_links(links):
    nodes = range(len(links))
    # wrong: return [(a, b) for a in nodes for b in nodes if links[a][b] != links[b][a]]
    return [(a, b) for a in nodes for b in nodes if links[a][b] and not links[b][a]]
