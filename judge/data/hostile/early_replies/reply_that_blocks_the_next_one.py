# expected: protocol wrong died timeout
# include: wire.py

# the first reply is valid, what follows is half a frame that the next reply completes
def add(a, b):
    send(frame({"id": call_id(), "v": None}) + struct.pack("<I", 1 << 20))
    return None
