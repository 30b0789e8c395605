# expected: exception
class Failure(Exception):
    def __reduce__(self):
        return open, ("@HOME@/rematch_hostile_unpickled", "w")
    __reduce_ex__ = lambda self, protocol: self.__reduce__()

def add(a, b):
    raise Failure(Failure())
