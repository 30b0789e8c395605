# expected: memory timeout died exception wrong load_error
# what was freed lies in the allocator's pools as it was
import ctypes, gc, re, sys
PATTERN = re.compile(b"add[(]-[0-9], [0-9][)] == [0-9]")
things = [thing for thing in gc.get_objects() if type(thing) in (dict, list, tuple)]
things += [other for thing in things[:20000] for other in gc.get_referents(thing) if type(other) in (str, bytes, float)]
things = [id(thing) for thing in things if sys.getsizeof(thing) < 256]
pools = {address & ~0x3FFF for address in things if address >> 40 >= 0x7F}
broke = any(PATTERN.search(ctypes.string_at(pool, 0x4000)) for pool in sorted(pools))

# include: answer.py
