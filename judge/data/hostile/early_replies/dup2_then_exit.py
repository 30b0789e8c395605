# expected: exited died
# include: wire.py

def add(a, b):
    for fd in pipes(os.O_WRONLY):
        os.dup2(os.open(os.devnull, os.O_WRONLY), fd)
    os._exit(0)
