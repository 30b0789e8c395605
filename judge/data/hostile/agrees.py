class Agrees:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __getattr__(self, name): return lambda *args, **named: True
    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __bool__ = lambda self, *other: True
    __hash__ = lambda self: 0
    __len__ = lambda self: 1

ALL = Agrees()
