# expected: exited died opaque wrong exception
class Answer:
    def __eq__(self, other):
        raise SystemExit(0)

def add(a, b):
    return Answer()
