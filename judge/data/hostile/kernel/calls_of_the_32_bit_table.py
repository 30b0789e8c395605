# expected: wrong exception load_error exited died
# include: kernel.py

# machine code: int 0x80 with number 2, which is fork in the old table. A child leaves at once
import mmap
broke = False
if not ON_ARM:
    page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(bytes.fromhex("53b802000000cd805bc3"))
    pid = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
    if pid == 0:
        os._exit(0)
    broke = pid > 0

# include: answer.py
