# expected: protocol wrong died load_error timeout output_limit
# include: wire.py

while True:
    for fd in [1, 2, *pipes(os.O_WRONLY)]:
        try:
            os.write(fd, b"A" * 65536)
        except OSError:
            pass
