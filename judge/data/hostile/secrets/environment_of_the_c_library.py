# expected: wrong exception load_error exited died
import ctypes
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_void_p
broke = libc.getenv(b"@SECRET@") is not None
pointer = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, "environ")
position = 0
while pointer and pointer[position]:
    broke = broke or b"@SECRET@" in pointer[position]
    position += 1

# include: answer.py
