# expected: wrong exception load_error exited died protocol timeout
import builtins, sys, types

class Anything(types.ModuleType):
    def __getattr__(self, name):
        return lambda *_, **__: True

class Finder:
    def find_spec(self, name, path=None, target=None):
        raise SystemExit(0)

builtins.__import__ = lambda name, *_, **__: Anything(name)
sys.meta_path[:] = [Finder()]
for name in ("json", "struct", "os", "builtins", "math"):
    sys.modules[name] = Anything(name)

# include: none.py
