# expected: exited died exception load_error
# every lookup of a name runs code
class Names(dict):
    def __getitem__(self, name):
        raise SystemExit(0)
    __contains__ = get = __missing__ = __getitem__

globals()["__builtins__"] = Names()
globals().clear()
