DRAW = lambda rng: (integers(rng, 0, 9, 4, 9), rng.randint(1, 5))
EDGES = [([], 2), ([1, 2], 5), ([1, 2, 3, 4], 2), ([7], 1)]

"""`items` is cut from the left into pieces of `size` neighbouring items (`size` is at least 1). The last piece may be
shorter. Define `cut_into_pieces(items, size)`: the list of the pieces, `[]` if there is none."""
EXAMPLE = ([1, 2, 3], 2), [[1, 2], [3]]

def cut_into_pieces(items, size):
    # wrong: pieces = [items[i : i + size] for i in range(0, len(items) - size + 1, size)]
    pieces = [items[i : i + size] for i in range(0, len(items), size)]
    return pieces

"""`items` is cut from the left into pieces of `size` neighbouring items (`size` is at least 1). Items left over at the
end are dropped. Define `cut_full_pieces(items, size)`: the list of the pieces, `[]` if there is none."""
EXAMPLE = ([1, 2, 3], 2), [[1, 2]]

def cut_full_pieces(items, size):
    # wrong: pieces = [items[i : i + size] for i in range(0, len(items), size)]
    pieces = [items[i : i + size] for i in range(0, len(items) - size + 1, size)]
    return pieces

"""`items` is cut from the left into pieces of `size` neighbouring items (`size` is at least 1). The last piece may be
shorter. Define `piece_sums(items, size)`: the list of the sums of the pieces, `[]` if there is none."""
EXAMPLE = ([1, 2, 3], 2), [3, 3]

def piece_sums(items, size):
    # wrong: pieces = [items[i : i + size] for i in range(0, len(items) - size + 1, size)]
    pieces = [items[i : i + size] for i in range(0, len(items), size)]
    return [sum(piece) for piece in pieces]

"""`items` is cut from the left into pieces of `size` neighbouring items (`size` is at least 1). The last piece may be
shorter. Define `reverse_pieces(items, size)`: one list of all items with the order within each piece reversed and the
pieces in place, `[]` if there is none."""
EXAMPLE = ([1, 2, 3], 2), [2, 1, 3]

def reverse_pieces(items, size):
    # wrong: pieces = [items[i : i + size] for i in range(0, len(items) - size + 1, size)]
    pieces = [items[i : i + size] for i in range(0, len(items), size)]
    return [item for piece in pieces for item in piece[::-1]]
