# expected: protocol wrong died
# include: wire.py

send(frame({"id": "load", "ok": ["add"]}))

# include: none.py
