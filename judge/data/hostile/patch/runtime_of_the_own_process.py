# expected: wrong exception load_error exited died protocol timeout
# every function of the module that runs this program now succeeds
import sys, types
frame = sys._getframe(1)
while frame:
    for name, value in list(frame.f_globals.items()):
        if isinstance(value, types.FunctionType) and not value.__code__.co_freevars:
            value.__code__ = (lambda *_, **__: {"v": "pass", "ok": ["add"], "tests": ["pass"] * 3}).__code__
    frame = frame.f_back

# include: none.py
