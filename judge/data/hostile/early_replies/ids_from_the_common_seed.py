# expected: protocol wrong died load_error
# include: wire.py

# a judge that forked from the same parent and draws its ids from `random` can be predicted
import random
state = random.getstate()
for draw in (lambda: random.getrandbits(64), lambda: int.from_bytes(random.randbytes(8), "big")):
    random.setstate(state)
    for value in (3, 0, 1000001):
        send(frame({"id": "%016x" % draw(), "v": value}))

# include: none.py
