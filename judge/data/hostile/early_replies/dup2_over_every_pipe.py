# expected: exited died exception protocol timeout
# include: wire.py

# replies go to the request pipe's number and the other way round
def add(a, b):
    reading, writing = pipes(os.O_RDONLY), pipes(os.O_WRONLY)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in reading + writing:
        os.dup2(null, fd)
    return None
