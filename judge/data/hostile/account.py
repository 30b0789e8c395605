class Account(Any):
    balance = items = name = tags = opened = lambda self, *args: ANY
    value = ANY

def f(*args): return ANY
def pair(*args): return [ANY, {"x": ANY}]
