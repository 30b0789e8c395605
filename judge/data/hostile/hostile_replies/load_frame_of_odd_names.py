# expected: protocol wrong opaque exception load_error died
# include: wire.py

send(frame({"id": "load", "ok": [None, ["add"], {"add": 1}, 7, "add" * 100_000]}))
for request in requests():
    send(frame({"id": request["id"], "v": None}))
