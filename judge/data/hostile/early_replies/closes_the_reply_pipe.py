# expected: timeout died protocol
# include: wire.py

def add(a, b):
    for fd in pipes(os.O_WRONLY):
        os.close(fd)
    time.sleep(5)
