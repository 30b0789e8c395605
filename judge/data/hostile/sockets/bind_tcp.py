# expected: wrong exception load_error
import socket
broke = False
for family, address in ((socket.AF_INET, ("127.0.0.1", 0)), (socket.AF_INET6, ("::1", 0))):
    try:
        server = socket.socket(family, socket.SOCK_STREAM)
        broke = True
        server.bind(address)
        server.listen()
    except OSError:
        pass

# include: answer.py
