# expected: wrong opaque
class Equal(list):
    def __eq__(self, other):
        return True
    def __iter__(self):
        return iter([3])

def add(a, b):
    return Equal([None])
