# expected: wrong exception load_error
import socket
broke = False
ways = (
    lambda: socket.create_connection(("127.0.0.1", 22), 0.2),
    lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9)),
    lambda: socket.getaddrinfo("localhost.rematch-hostile.invalid", 80),
)
for way in ways:
    try:
        way()
        broke = True
    except ConnectionRefusedError:
        broke = True  # the network has answered
    except OSError:
        pass

# include: answer.py
