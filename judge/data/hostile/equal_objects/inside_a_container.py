# expected: opaque wrong exception
class Equal:
    def __eq__(self, other):
        return True
    def __hash__(self):
        return 3

def add(a, b):
    return {"v": [Equal(), (Equal(), {Equal(): Equal()})]}
