# expected: protocol wrong died load_error
# include: wire.py

VERDICTS = {"load": None, "tests": ["pass", "pass", "pass"]}
send(frame(VERDICTS))
send(json.dumps(VERDICTS).encode())

def add(a, b):
    send(frame(VERDICTS))
    send(frame({"st_t": 0, "st_u": 0, "cpu_u": 0, "rss_u": 0, "load": None, "tests": ["pass"] * 3}))
    return None
