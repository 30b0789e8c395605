DRAW = lambda rng: (
    "".join("(" * (n := rng.randint(1, 4)) + "()" * rng.randint(0, 2) + ")" * n for _ in range(rng.randint(1, 4))),
)
EDGES = [("",), ("()",), ("()()",), ("((()))",)]

"""`text` holds only ( and ), balanced. Define `nesting_depth(text)`: the depth of its deepest nesting, 0 if `text` is
empty."""
EXAMPLE = ("(()())()",), 2

def nesting_depth(text):
    depth = result = 0
    for i, character in enumerate(text):
        depth += 1 if character == "(" else -1
        # wrong: result = depth if character == "(" else result
        result = max(result, depth)
    return result

"""`text` holds only ( and ), balanced. Define `count_outer_groups(text)`: the number of its outermost pairs, 0 if
`text` is empty."""
EXAMPLE = ("(()())()",), 2

def count_outer_groups(text):
    depth = result = 0
    for i, character in enumerate(text):
        depth += 1 if character == "(" else -1
        # wrong: result += character == "(" and depth == 2
        result += character == ")" and depth == 0
    return result

"""`text` holds only ( and ), balanced. Define `count_empty_pairs(text)`: the number of pairs with nothing between them,
0 if `text` is empty."""
EXAMPLE = ("(()())()",), 3

def count_empty_pairs(text):
    depth = result = 0
    for i, character in enumerate(text):
        depth += 1 if character == "(" else -1
        # wrong: result += character == "(" and depth == 1
        result += text[i : i + 2] == "()"
    return result
