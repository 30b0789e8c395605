# expected: wrong
# a line end and brackets in the process name confuse those who read /proc
import ctypes
for number in range(1000):
    ctypes.CDLL(None).prctl(15, b"a) S 1" + bytes([10]) + b"%d" % number, 0, 0, 0)

# include: none.py
