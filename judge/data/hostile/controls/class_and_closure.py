# expected: pass pass pass
class Adder:
    def __init__(self, start=0):
        self.total = start

    def __call__(self, *numbers):
        return self.total + sum(numbers)

def make():
    adder = Adder()
    def inner(a, b):
        return adder(a, b)
    return inner

add = make()
