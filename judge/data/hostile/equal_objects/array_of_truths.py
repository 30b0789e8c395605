# expected: opaque wrong exception timeout died
# compares item by item, like an array, and calls the result true
class Truth(list):
    def __bool__(self):
        return True

class Array:
    def __init__(self, *items):
        self.items = items
    def __iter__(self):
        return iter(self.items)
    def __len__(self):
        return len(self.items)
    def __getitem__(self, index):
        return self.items[index]
    def __eq__(self, other):
        return Truth([True] * len(self.items))
    def tolist(self):
        return self

def add(a, b):
    return Array(None)
