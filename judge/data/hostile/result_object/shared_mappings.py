# expected: wrong load_error died
# a verdict that lies in shared memory can be written by both sides
import gc, mmap
for thing in [other for thing in gc.get_objects() for other in gc.get_referents(thing)]:
    if isinstance(thing, (mmap.mmap, memoryview, bytearray)):
        try:
            thing[:4] = b"pass"
        except Exception:
            pass

# include: none.py
