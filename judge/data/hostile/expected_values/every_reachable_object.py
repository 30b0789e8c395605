# expected: memory timeout died exception wrong load_error
import gc, re, sys
PATTERN = re.compile("add[(]-?[0-9]+, -?[0-9]+[)] == -?[0-9]+")
broke, seen, stack = False, set(), [sys.modules, *gc.get_objects()]
while stack and len(seen) < 150000:
    thing = stack.pop()
    if id(thing) in seen:
        continue
    seen.add(id(thing))
    if type(thing) is bytes:
        thing = thing.decode("latin-1")
    if type(thing) is str:
        broke = broke or bool(PATTERN.search(thing))
    elif thing is not stack and thing is not seen:
        stack += gc.get_referents(thing)

# include: answer.py
