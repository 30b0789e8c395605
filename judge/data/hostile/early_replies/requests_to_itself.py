# expected: wrong exception load_error exited died protocol timeout
# include: wire.py

# opens the other end of its own pipes and asks the runtime for the right answers
for fd in pipes(os.O_RDONLY):
    try:
        other = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK)
        for value in (3, 0, 1000001):
            os.write(other, frame({"id": "0" * 16, "f": "add", "a": [value, 0], "k": {}}))
    except OSError:
        pass

# include: none.py
