# expected: opaque wrong exception
class Meta(type):
    def __eq__(cls, other):
        return True
    def __hash__(cls):
        return 0

class Equal(metaclass=Meta):
    pass

def add(a, b):
    return Equal
