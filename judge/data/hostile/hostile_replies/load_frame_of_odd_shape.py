# expected: protocol wrong opaque exception load_error died
# include: wire.py

send(frame({"id": "load", "ok": {"add": True}, "exc": None, "args": 7}))
for request in requests():
    send(frame({"id": request["id"], "v": None}))
