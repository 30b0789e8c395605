# expected: opaque wrong exception died memory
class Answer:
    def __repr__(self):
        return "x" * (1 << 30)
    __str__ = __repr__
    def __format__(self, spec):
        return repr(self)

def add(a, b):
    return Answer()
