DRAW = lambda rng: (word(rng, "ab" if rng.random() < 0.5 else "abc", 5, 11),)
EDGES = [("",), ("a",), ("aaa",), ("abc",), ("abcba",)]

"""A palindrome reads the same forwards and backwards. Define `count_palindromic_substrings(text)`: the number of its
non-empty substrings that are palindromes, where substrings at different places count separately even if they are
equal."""
EXAMPLE = ("aab",), 4

def count_palindromic_substrings(text):
    size = len(text)
    found = [(i, j) for i in range(size) for j in range(i + 1, size + 1) if text[i:j] == text[i:j][::-1]]
    pieces = [0] + [size] * size
    for i, j in sorted(found):
        pieces[j] = min(pieces[j], pieces[i] + 1)
    # wrong: return len({text[i:j] for i, j in found})
    return len(found)

"""A palindrome reads the same forwards and backwards. Define `longest_palindromic_substring(text)`: its longest
substring that is a palindrome, the leftmost one if several tie, `""` for the empty text."""
EXAMPLE = ("babad",), "bab"

def longest_palindromic_substring(text):
    size = len(text)
    found = [(i, j) for i in range(size) for j in range(i + 1, size + 1) if text[i:j] == text[i:j][::-1]]
    pieces = [0] + [size] * size
    for i, j in sorted(found):
        pieces[j] = min(pieces[j], pieces[i] + 1)
    # wrong: return max((text[i:j] for i, j in found[::-1]), key=len, default="")
    return max((text[i:j] for i, j in found), key=len, default="")

"""A palindrome reads the same forwards and backwards. Define `fewest_palindromic_pieces(text)`: the least number of
pieces into which it can be cut such that each piece is a palindrome, 0 for the empty text."""
EXAMPLE = ("aab",), 2

def fewest_palindromic_pieces(text):
    size = len(text)
    found = [(i, j) for i in range(size) for j in range(i + 1, size + 1) if text[i:j] == text[i:j][::-1]]
    pieces = [0] + [size] * size
    for i, j in sorted(found):
        pieces[j] = min(pieces[j], pieces[i] + 1)
    # wrong: return max(pieces[size] - 1, 0)
    return pieces[size]
