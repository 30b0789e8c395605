# expected: timeout died exception protocol
# include: wire.py

# the pipe stays open in copies after the end of its number, so its reader sees no end of file
def add(a, b):
    for fd in pipes(os.O_WRONLY):
        try:
            while True:
                os.dup(fd)
        except OSError:
            os.close(fd)
    time.sleep(5)
