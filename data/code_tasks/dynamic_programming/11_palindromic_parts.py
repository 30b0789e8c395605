DRAW = lambda rng: (word(rng, "abc", 4, 10),)
EDGES = [("",), ("a",), ("ab",), ("abba",), ("abab",)]

def longest(text):
    masks = range(1 << len(text))
    texts = ["".join(text[i] for i in range(len(text)) if mask >> i & 1) for mask in masks]
    return max(len(part) for part in texts if part == part[::-1])

"""A palindrome reads the same forwards and backwards. Define `longest_palindromic_subsequence(text)`: the length of the
longest palindrome that remains after deleting some (or none) of its characters, 0 for the empty text."""
EXAMPLE = ("abcab",), 3
ORACLE = longest

def longest_palindromic_subsequence(text):
    size = len(text)
    best = {}
    for start in range(size, -1, -1):
        for end in range(start, size + 1):
            inside = best.get((start + 1, end - 1), 0)
            if end - start < 2:
                best[start, end] = end - start
            elif text[start] == text[end - 1]:
                best[start, end] = inside + 2
            else:
                best[start, end] = max(best[start + 1, end], best[start, end - 1])
    # wrong: return max([n for (i, j), n in best.items() if n == j - i])
    return best[0, size]

"""A palindrome reads the same forwards and backwards. Define `insertions_to_palindrome(text)`: the least number of
characters that must be inserted (anywhere) to make it a palindrome, 0 for the empty text."""
EXAMPLE = ("abcab",), 2
ORACLE = lambda text: len(text) - longest(text)

def insertions_to_palindrome(text):
    size = len(text)
    best = {}
    for start in range(size, -1, -1):
        for end in range(start, size + 1):
            inside = best.get((start + 1, end - 1), 0)
            if end - start < 2:
                best[start, end] = end - start
            elif text[start] == text[end - 1]:
                best[start, end] = inside + 2
            else:
                best[start, end] = max(best[start + 1, end], best[start, end - 1])
    # wrong: return best[0, size] - 1 if size else 0
    return size - best[0, size]

"""A palindrome reads the same forwards and backwards. Define `changes_to_palindrome(text)`: the least number of
characters that must be replaced by others to make it a palindrome, 0 for the empty text."""
EXAMPLE = ("abca",), 1
ORACLE = lambda text: sum(a != b for a, b in zip(text, text[::-1])) // 2

def changes_to_palindrome(text):
    size = len(text)
    best = {}
    for start in range(size, -1, -1):
        for end in range(start, size + 1):
            inside = best.get((start + 1, end - 1), 0)
            if end - start < 2:
                best[start, end] = end - start
            elif text[start] == text[end - 1]:
                best[start, end] = inside if end - start > 3 else 0
            else:
                best[start, end] = 1 + (inside if end - start > 3 else 0)
    # wrong: return sum(a != b for a, b in zip(text, text[::-1]))
    return best[0, size] if size > 1 else 0
