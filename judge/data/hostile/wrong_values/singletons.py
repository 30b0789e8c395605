# expected: opaque wrong exception
answers = [NotImplemented, Ellipsis, __builtins__]

def add(a, b):
    return answers.pop()
