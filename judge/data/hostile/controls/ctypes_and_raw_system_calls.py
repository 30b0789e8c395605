# expected: pass pass pass
# include: kernel.py

# the attacks by ctypes prove nothing where this one fails
def add(a, b):
    return a + b if syscall(39, 172) == os.getpid() and ctypes.c_long(a).value == a else None
