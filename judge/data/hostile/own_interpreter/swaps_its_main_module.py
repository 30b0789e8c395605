# expected: wrong exception load_error exited died protocol timeout
import sys, types
main = types.ModuleType("__main__")
main.add = lambda a, b: None
for name in [name for name, module in sys.modules.items() if module is sys.modules["__main__"]]:
    sys.modules[name] = main
sys.stdin = sys.stdout = sys.stderr = None

# include: none.py
