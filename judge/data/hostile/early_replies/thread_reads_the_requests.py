# expected: wrong exception load_error exited died protocol timeout
# include: wire.py

# the request is taken before the runtime sees it, and answered with a verdict
def steal():
    for request in requests():
        send(frame({"id": request["id"], "v": "pass", "verdict": "pass", "ok": True, "tests": ["pass"] * 3}))

threading.Thread(target=steal, daemon=True).start()

# include: none.py
