# expected: wrong exception load_error
import socket
broke = False
for family in (socket.AF_UNIX, 16, 17, 38, 40, 31):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        try:
            socket.socket(family, kind)
            broke = True
        except OSError:
            pass
try:
    import _socket
    _socket.socketpair()
    broke = True
except OSError:
    pass

# include: answer.py
