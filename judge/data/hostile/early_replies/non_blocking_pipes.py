# expected: wrong exception load_error exited died protocol timeout opaque
# include: wire.py

# the flag belongs to the open file, so the judge's end would share it
for fd in pipes(os.O_RDONLY) + pipes(os.O_WRONLY):
    os.set_blocking(fd, False)
    try:
        fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC | os.O_APPEND)
    except OSError:
        pass

def add(a, b):
    return ["x" * 1000000]
