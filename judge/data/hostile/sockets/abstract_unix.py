# expected: wrong exception load_error
import socket
broke = False
try:
    server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    broke = True
    server.bind(chr(0) + "rematch_hostile")
except OSError:
    pass

# include: answer.py
