# expected: protocol wrong died exited
# include: wire.py

def add(a, b):
    send(frame({"load": None, "tests": ["pass", "pass", "pass"]}))
    time.sleep(0.1)
    os._exit(0)
