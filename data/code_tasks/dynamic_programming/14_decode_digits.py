DRAW = lambda rng: (word(rng, "0112123", 3, 9),)
EDGES = [("",), ("0",), ("10",), ("100",), ("27",), ("1212",), ("106",)]

"""Letters are written as numbers, A as 1, B as 2 and so on up to Z as 26, one directly after the other without leading
zeros. Define `count_decodings(digits)`: the number of texts that the digits may stand for; 1 for no digits (the empty
text), 0 if they cannot be read in this way."""
EXAMPLE = ("1123",), 5

def count_decodings(digits):
    ways = [1]
    for end in range(1, len(digits) + 1):
        count = 0
        for size in (1, 2):
            part = digits[end - size : end] if size <= end else ""
            # wrong: if part and int(part) <= 26:
            if part and part[0] != "0" and int(part) <= 26:
                count += ways[end - size]
        ways.append(count)
    return ways[-1]

"""Letters are written as numbers, A as 1, B as 2 and so on up to L as 12, one directly after the other without leading
zeros. Define `count_short_decodings(digits)`: the number of texts that the digits may stand for; 1 for no digits (the
empty text), 0 if they cannot be read in this way."""
EXAMPLE = ("1123",), 3

def count_short_decodings(digits):
    ways = [1]
    for end in range(1, len(digits) + 1):
        count = 0
        for size in (1, 2):
            part = digits[end - size : end] if size <= end else ""
            # wrong: if part and int(part) <= 12:
            if part and part[0] != "0" and int(part) <= 12:
                count += ways[end - size]
        ways.append(count)
    return ways[-1]
