# expected: timeout died wrong load_error
import gc
for thing in gc.get_objects():
    name = type(thing).__name__
    try:
        if "Proxy" in name or name in ("Queue", "SimpleQueue", "Connection"):
            for method in ("append", "put", "send"):
                getattr(thing, method, print)("passed")
        elif "Array" in name or "Synchronized" in name:
            thing[:] = [1] * len(thing)
    except Exception:
        pass

# include: none.py
