# expected: protocol wrong opaque exception load_error
# include: wire.py

names = ["add", "print", "len", "isinstance", "AssertionError", "__builtins__", "__import__", "__name__", ""]
send(frame({"id": "load", "ok": names}))
for request in requests():
    send(frame({"id": request["id"], "v": None}))
