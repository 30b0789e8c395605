DRAW = lambda rng: (sentence(rng, 1, 4) + str(rng.randint(0, 99)), rng.randint(-40, 40))
EDGES = [("", 5), ("z9", 1), ("a0", -1), ("Same 5x", 0)]

"""Define `encode_caesar(text, shift)`: `text` with every lower-case English letter replaced by the one `shift` places
later in the alphabet; after z comes a. All other characters stay. `shift` may be any integer, also a negative one."""
EXAMPLE = ("Xyz", 3), "Xbc"

def encode_caesar(text, shift):
    result = []
    for character in text:
        if character in "abcdefghijklmnopqrstuvwxyz":
            position = "abcdefghijklmnopqrstuvwxyz".index(character)
            # wrong: character = "abcdefghijklmnopqrstuvwxyz"[min(max(position + shift, 0), 26 - 1)]
            character = "abcdefghijklmnopqrstuvwxyz"[(position + shift) % 26]
        result.append(character)
    return "".join(result)

"""Define `decode_caesar(text, shift)`: `text` with every lower-case English letter replaced by the one `shift` places
earlier in the alphabet; before a comes z. All other characters stay. `shift` may be any integer, also a negative
one."""
EXAMPLE = ("xbc A", 3), "uyz A"

def decode_caesar(text, shift):
    result = []
    for character in text:
        if character in "abcdefghijklmnopqrstuvwxyz":
            position = "abcdefghijklmnopqrstuvwxyz".index(character)
            # wrong: character = "abcdefghijklmnopqrstuvwxyz"[min(max(position - shift, 0), 26 - 1)]
            character = "abcdefghijklmnopqrstuvwxyz"[(position - shift) % 26]
        result.append(character)
    return "".join(result)

"""Define `shift_digits(text, shift)`: `text` with every digit replaced by the one `shift` places later; after 9 comes
0. All other characters stay. `shift` may be any integer, also a negative one."""
EXAMPLE = ("a98", 3), "a21"

def shift_digits(text, shift):
    result = []
    for character in text:
        if character in "0123456789":
            position = "0123456789".index(character)
            # wrong: character = "0123456789"[min(max(position + shift, 0), 10 - 1)]
            character = "0123456789"[(position + shift) % 10]
        result.append(character)
    return "".join(result)
