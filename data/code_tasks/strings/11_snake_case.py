DRAW = lambda rng: ("_".join(word(rng, "abcxyz", 1, 5) for _ in range(rng.randint(1, 4))),)
EDGES = [("word",), ("a_b",)]

"""`name` is a word in lower-case letters or several of them joined by single underscores, like `file_name_end`. Define
`snake_to_camel(name)`: the same name as words joined directly, each but the first with a capital first letter
(`fileNameEnd`)."""
EXAMPLE = ("max_line_size",), "maxLineSize"

def snake_to_camel(name):
    words = name.split("_")
    # wrong: return words[0] + "".join(words[1:]).capitalize()
    return words[0] + "".join(word.capitalize() for word in words[1:])

"""`name` is a word in lower-case letters or several of them joined by single underscores, like `file_name_end`. Define
`snake_to_pascal(name)`: the same name as words joined directly, each with a capital first letter (`FileNameEnd`)."""
EXAMPLE = ("max_line_size",), "MaxLineSize"

def snake_to_pascal(name):
    words = name.split("_")
    # wrong: return "".join(words).capitalize()
    return "".join(word.capitalize() for word in words)

"""`name` is a word in lower-case letters or several of them joined by single underscores, like `file_name_end`. Define
`snake_initials(name)`: the same name as the joined first letters of its words (`fne`)."""
EXAMPLE = ("max_line_size",), "mls"

def snake_initials(name):
    words = name.split("_")
    # wrong: return "".join(words)[: len(words)]
    return "".join(word[0] for word in words)
