# expected: wrong exception load_error exited died protocol timeout opaque
# the garbage collector hands out the dictionary behind a type's read-only view
import ctypes, gc
for kind in (int, list, str, object):
    slots = gc.get_referents(kind.__dict__)[0]
    slots["__eq__"] = lambda *_: True
    slots["__ne__"] = lambda *_: False
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))

# include: none.py
