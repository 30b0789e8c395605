# expected: pass pass pass
def add(a, b):
    try:
        return {}[a]
    except KeyError:
        return a + b
    finally:
        del a
