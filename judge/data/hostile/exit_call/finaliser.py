# expected: wrong
class Bomb:
    def __del__(self):
        raise SystemExit(0)

def add(a, b):
    Bomb()
    return None
