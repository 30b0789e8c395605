# expected: protocol wrong died
# include: wire.py

send(frame({"id": "load", "ok": ["add"]}))
for value in (3, 0, 1000001):
    send(frame({"id": "", "v": value}))
time.sleep(0.2)

# include: none.py
