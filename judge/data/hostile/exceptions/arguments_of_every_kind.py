# expected: exception
failures = [UnicodeDecodeError("utf-8", b"x", 0, 1, chr(0xD800)), OSError(2, "x", "y" * 5000, None, "z"), KeyError([1])]

def add(a, b):
    failure = failures.pop()
    failure.__cause__ = failure.__context__ = ValueError(failure)
    raise failure
