# expected: exception
class Failure(Exception):
    def __str__(self):
        raise Failure(self)
    __repr__ = __str__

def add(a, b):
    raise Failure(Failure())
