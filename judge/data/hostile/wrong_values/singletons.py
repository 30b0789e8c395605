# expected: NOT_DATA
answers = [NotImplemented, Ellipsis, __builtins__]

def add(a, b):
    return answers.pop()
