# expected: protocol wrong died exited
# include: wire.py

# says that it is loaded, then leaves with status 0
send(frame({"id": "load", "ok": ["add"]}))
os._exit(0)
