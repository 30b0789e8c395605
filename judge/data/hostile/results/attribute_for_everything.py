# expected: opaque wrong exception timeout died memory
class Everything:
    def __getattr__(self, name):
        return getattr(self, name + "_")
    def __iter__(self):
        return self
    def __next__(self):
        return self

def add(a, b):
    return Everything()
