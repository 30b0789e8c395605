import ctypes, os

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
ON_ARM = os.uname().machine == "aarch64"

def syscall(x86, arm, *arguments):
    number = arm if ON_ARM else x86
    return libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
