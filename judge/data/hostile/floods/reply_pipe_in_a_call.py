# expected: protocol wrong died exception timeout output_limit
# include: wire.py

def add(a, b):
    while True:
        send(bytes(65536))
