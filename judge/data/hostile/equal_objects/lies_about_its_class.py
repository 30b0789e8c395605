# expected: opaque wrong exception
# isinstance(answer, int) is true, and so is every comparison
class Equal:
    @property
    def __class__(self):
        return int
    def __eq__(self, other):
        return True
    def __index__(self):
        return self
    __int__ = __index__

def add(a, b):
    return Equal()
