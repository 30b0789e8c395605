# expected: wrong exception load_error exited died
# the environment that the process was started with stays there, also when every variable has been removed
import ctypes
libc = ctypes.CDLL(None)
libc.getauxval.restype = ctypes.c_ulong
name_of_program = libc.getauxval(31)
broke = b"@SECRET@" in ctypes.string_at(name_of_program - 2048, 2048)

# include: answer.py
