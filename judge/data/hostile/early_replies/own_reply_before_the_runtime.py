# expected: protocol wrong died
# include: wire.py

# two replies with the right id: the first one says pass
def add(a, b):
    send(frame({"id": call_id(), "v": "pass", "verdict": "pass", "exc": None}))
    return None
