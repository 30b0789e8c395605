DRAW = lambda rng: (word(rng, "abc", 3, 9), word(rng, "abc", 3, 9))
EDGES = [("", ""), ("", "a"), ("abc", "abc"), ("abc", "xyz"), ("aab", "aba")]

def common(first, second, dense=False):
    def parts(text):
        masks = [[i for i in range(len(text)) if mask >> i & 1] for mask in range(1 << len(text))]
        return {"".join(text[i] for i in part) for part in masks
                if not dense or not part or part[-1] - part[0] == len(part) - 1}

    return min(parts(first) & parts(second), key=lambda text: (-len(text), text))

"""A subsequence of a text is what remains of it after deleting any of its characters, the others keeping their order.
Define `longest_common_subsequence(first, second)`: the length of the longest text that is a subsequence of both, 0 if
they share no character."""
EXAMPLE = ("abcb", "bcab"), 3
ORACLE = lambda first, second: len(common(first, second))

def longest_common_subsequence(first, second):
    best = {}
    for i in range(len(first), -1, -1):
        for j in range(len(second), -1, -1):
            if i == len(first) or j == len(second):
                best[i, j] = ""
            elif first[i] == second[j]:
                best[i, j] = first[i] + best[i + 1, j + 1]
            else:
                # wrong: best[i, j] = best[i + 1, j]
                best[i, j] = max(best[i + 1, j], best[i, j + 1], key=len)
    return len(best[0, 0])

"""A subsequence of a text is what remains of it after deleting any of its characters, the others keeping their order.
Define `smallest_common_subsequence(first, second)`: the longest text that is a subsequence of both, the alphabetically
smallest if several tie (`""` if they share no character)."""
EXAMPLE = ("ab", "ba"), "a"
EDGES = [("ba", "ab"), ("acb", "bca")]
ORACLE = common

def smallest_common_subsequence(first, second):
    best = {}
    for i in range(len(first), -1, -1):
        for j in range(len(second), -1, -1):
            if i == len(first) or j == len(second):
                best[i, j] = ""
            elif first[i] == second[j]:
                best[i, j] = first[i] + best[i + 1, j + 1]
            else:
                # wrong: best[i, j] = max(best[i + 1, j], best[i, j + 1], key=len)
                best[i, j] = min(best[i + 1, j], best[i, j + 1], key=lambda text: (-len(text), text))
    return best[0, 0]

"""A substring of a text is what remains of it after deleting characters at its start and at its end only. Define
`longest_common_substring(first, second)`: the length of the longest text that is a substring of both, 0 if they share
no character."""
EXAMPLE = ("xabc", "abxc"), 2
ORACLE = lambda first, second: len(common(first, second, dense=True))

def longest_common_substring(first, second):
    best = {}
    for i in range(len(first), -1, -1):
        for j in range(len(second), -1, -1):
            if i == len(first) or j == len(second):
                best[i, j] = ""
            elif first[i] == second[j]:
                best[i, j] = first[i] + best[i + 1, j + 1]
            else:
                # wrong: best[i, j] = best[i + 1, j + 1]
                best[i, j] = ""
    return max(map(len, best.values()))
