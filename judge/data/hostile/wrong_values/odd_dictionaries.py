# expected: wrong opaque
# unequal keys that look alike; keys that are unequal to themselves; the shapes of the wire itself as data
nan = float("nan")
answers = [{nan: 1, float("nan"): 2, (nan,): 3}, {"id": "load", "ok": ["add"]}, {"h": 1, "iter": True, "set": [[1]]}]

def add(a, b):
    return answers.pop()
