# expected: timeout died protocol
# include: wire.py

for request in requests():
    send(frame({"id": request["id"], "v": "pass"}))
