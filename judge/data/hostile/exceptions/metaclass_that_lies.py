# expected: exited died exception load_error
class Meta(type):
    __mro__ = property(lambda cls: 1 / 0)
    __name__ = property(lambda cls: ["pass"] * 1000)
    def mro(cls):
        return super().mro()
    def __getattribute__(cls, name):
        if name in ("__name__", "__qualname__", "__module__"):
            raise SystemExit(0)
        return super().__getattribute__(name)

class Failure(Exception, metaclass=Meta):
    args = property(lambda self: 1 / 0)

def add(a, b):
    raise Failure
