# expected: wrong exception load_error exited died
class Add:
    def __getattribute__(self, name):
        raise SystemExit(0)
    def __call__(self, a, b):
        return None
    def __eq__(self, other):
        raise SystemExit(0)
    __hash__ = None

add = Add()
