# expected: opaque wrong exception
# a subclass on the right hand side is asked first
class Equal(float):
    def __eq__(self, other):
        return True
    __hash__ = float.__hash__
    def __radd__(self, other):
        return self

class Sub(complex, metaclass=type("Meta", (type,), {"__instancecheck__": lambda *_: True})):
    __eq__ = Equal.__eq__
    __hash__ = None

def add(a, b):
    return [Equal("nan"), Sub(1, 2)]
