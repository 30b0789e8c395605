# expected: opaque wrong exception
# whoever pickles the answer, and loads it again, makes a file
class Answer:
    def __reduce__(self):
        return open, ("@HOME@/rematch_hostile_unpickled", "w")
    __reduce_ex__ = lambda self, protocol: self.__reduce__()

def add(a, b):
    return Answer()
