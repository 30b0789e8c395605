# expected: memory timeout died exception wrong load_error
# 600 MB from malloc, without an object of Python; then by moving the break
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.sbrk.restype = ctypes.c_void_p
blocks = [libc.malloc(ctypes.c_size_t(1 << 20)) for _ in range(600)]
broke = all(blocks) or libc.sbrk(ctypes.c_ssize_t(600 << 20)) not in (None, 2**64 - 1)

# include: answer.py
