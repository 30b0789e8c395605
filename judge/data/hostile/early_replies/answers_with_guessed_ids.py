# expected: protocol wrong died load_error
# include: wire.py

for value in (3, 0, 1000001):
    for guess in ("load", "0" * 16, "f" * 16, "%016x" % value, 1, None, "", "*"):
        send(frame({"id": guess, "v": value}))

# include: none.py
