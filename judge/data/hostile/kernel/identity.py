# expected: wrong exception load_error
# include: kernel.py

# becomes another user, or gets its capabilities back
header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(*[0xFFFFFFFF] * 6)
broke = syscall(105, 146, 0) == 0 or syscall(117, 147, 0, 0, 0) == 0 or syscall(106, 144, 0) == 0
broke = broke or syscall(126, 91, header, data) == 0 or syscall(116, 159, 0, None) == 0
broke = broke or syscall(112, 157) >= 0 or syscall(109, 154, 0, @GROUP@) == 0

# include: answer.py
