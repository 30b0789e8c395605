DRAW = parents

"""A tree is given as the list `parents`: entry i is the parent of node i, and -1 for the root. Define
`tree_height(parents)`: the greatest number of edges between the root and a node."""
EXAMPLE = ([-1, 0, 0, 2],), 2
EDGES = [([1, -1, 0],)]

def tree_height(parents):
    def ancestors(node):
        chain = [node]
        while parents[chain[-1]] != -1:
            chain.append(parents[chain[-1]])
        return chain

    # wrong: return len(ancestors(len(parents) - 1)) - 1
    return max(len(ancestors(node)) for node in range(len(parents))) - 1

"""A tree is given as the list `parents`: entry i is the parent of node i, and -1 for the root. Define
`subtree_sizes(parents)`: the list that has for each node the number of nodes in its subtree: itself, its children,
their children and so on."""
EXAMPLE = ([-1, 0, 0, 2],), [4, 1, 2, 1]

def subtree_sizes(parents):
    def ancestors(node):
        chain = [node]
        while parents[chain[-1]] != -1:
            chain.append(parents[chain[-1]])
        return chain

    # wrong: return [parents.count(node) + 1 for node in range(len(parents))]
    return [sum(node in ancestors(other) for other in range(len(parents))) for node in range(len(parents))]

"""A tree is given as the list `parents`: entry i is the parent of node i, and -1 for the root. Define
`lowest_common_ancestor(parents, a, b)`: the node farthest from the root that is an ancestor of both node `a` and node
`b`, where every node is also an ancestor of itself."""
EXAMPLE = ([-1, 0, 0, 2], 1, 3), 0
EDGES = [([-1], 0, 0), ([-1, 0, 1], 2, 1), ([-1, 0, 0], 1, 2)]
DRAW = lambda rng: (lambda tree: (tree, rng.randrange(len(tree)), rng.randrange(len(tree))))(*parents(rng))

def lowest_common_ancestor(parents, a, b):
    def ancestors(node):
        chain = [node]
        while parents[chain[-1]] != -1:
            chain.append(parents[chain[-1]])
        return chain

    # wrong: return parents[a] if a != b else a
    return next(node for node in ancestors(a) if node in ancestors(b))

"""A tree is given as the list `parents`: entry i is the parent of node i, and -1 for the root. Define
`tree_leaves(parents)`: the ascending list of the nodes without children."""
EXAMPLE = ([-1, 0, 0, 2],), [1, 3]

def tree_leaves(parents):
    def ancestors(node):
        chain = [node]
        while parents[chain[-1]] != -1:
            chain.append(parents[chain[-1]])
        return chain

    # wrong: return [node for node in range(1, len(parents)) if node > max(parents)]
    return [node for node in range(len(parents)) if node not in parents]
