# expected: timeout died
# settings: {"entry_points": ("check",)}
# test: assert check(1)
class T:
    def __bool__(self):
        while True: pass
def check(x): return T()
