DRAW = lambda rng: (word(rng, "abc", 2, 8), word(rng, "abcd", 2, 8))
EDGES = [("", ""), ("abc", "abc"), ("", "ab"), ("ab", "ba")]

def cost(first, second, inserting, deleting, replacing):
    if not first or not second:
        return len(first) * deleting + len(second) * inserting
    if first[0] == second[0]:
        return cost(first[1:], second[1:], inserting, deleting, replacing)
    ways = (first[1:], second[1:], replacing), (first[1:], second, deleting), (first, second[1:], inserting)
    return min(cost(a, b, inserting, deleting, replacing) + step for a, b, step in ways)

"""Define `levenshtein(first, second)`: the least total cost of turning the text `first` into the text `second`, where
inserting, deleting or replacing one character costs 1 each."""
EXAMPLE = ("kitten", "sitting"), 3
ORACLE = lambda first, second: cost(first, second, 1, 1, 1)

def levenshtein(first, second):
    row = [j * 1 for j in range(len(second) + 1)]
    for i, a in enumerate(first, 1):
        above, row = row, [i * 1]
        for j, b in enumerate(second, 1):
            # wrong: change = above[j - 1] + (0 if a == b else 2)
            change = above[j - 1] + (0 if a == b else 1)
            row.append(min(change, above[j] + 1, row[j - 1] + 1))
    return row[-1]

"""Define `insert_delete_distance(first, second)`: the least total cost of turning the text `first` into the text
`second`, where inserting or deleting one character costs 1 each and nothing else is allowed."""
EXAMPLE = ("kitten", "sitting"), 5
ORACLE = lambda first, second: cost(first, second, 1, 1, 2)

def insert_delete_distance(first, second):
    row = [j * 1 for j in range(len(second) + 1)]
    for i, a in enumerate(first, 1):
        above, row = row, [i * 1]
        for j, b in enumerate(second, 1):
            # wrong: change = above[j - 1] + (0 if a == b else 1)
            change = above[j - 1] + (0 if a == b else 2)
            row.append(min(change, above[j] + 1, row[j - 1] + 1))
    return row[-1]

"""Define `weighted_edit_distance(first, second)`: the least total cost of turning the text `first` into the text
`second`, where inserting a character costs 2, deleting one costs 1 and replacing one by another costs 2."""
EXAMPLE = ("ab", "bcd"), 5
EDGES = [("", "abc"), ("abc", "")]
ORACLE = lambda first, second: cost(first, second, 2, 1, 2)

def weighted_edit_distance(first, second):
    row = [j * 2 for j in range(len(second) + 1)]
    for i, a in enumerate(first, 1):
        above, row = row, [i * 1]
        for j, b in enumerate(second, 1):
            change = above[j - 1] + (0 if a == b else 2)
            # wrong: row.append(min(change, above[j] + 2, row[j - 1] + 1))
            row.append(min(change, above[j] + 1, row[j - 1] + 2))
    return row[-1]
