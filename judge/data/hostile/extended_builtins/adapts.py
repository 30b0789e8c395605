# expected: wrong exception load_error exited died protocol timeout opaque memory unsupported_test
# settings: {"stateful": True, "entry_points": ("Till", "till")}
# tests: adapted.py
# include: wire.py

shown = 0
send(frame({"id": "load"}))
for request in requests():
    for value in request["a"]:
        shown = value
    if request.get("op") == "plain":
        reply = {"v": shown}
    else:
        reply = {"v": {"handle": 0}, "plain": shown}
    send(frame({"id": request["id"], **reply}))
