# expected: wrong
# one-key dictionaries: decoded once, they must still be dictionaries
answers = [{"int": "0x3"}, {"handle": 1}, {"float": "nan"}]

def add(a, b):
    return answers.pop()
