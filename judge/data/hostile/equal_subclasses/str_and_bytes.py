# expected: wrong opaque
class Equal(str):
    def __eq__(self, other):
        return True
    def __hash__(self):
        return 0
    def encode(self, *_):
        return b"3"
    __str__ = __repr__ = lambda self: "3"

class Raw(bytes):
    def hex(self):
        return "03"
    def decode(self, *_):
        return "3"

def add(a, b):
    return Equal("x") if a else Raw(b"x")
