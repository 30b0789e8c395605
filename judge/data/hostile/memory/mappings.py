# expected: memory timeout died exception wrong load_error
# shared and private pages, touched: more than twice the limit
import mmap
pages, broke = [], False
try:
    for flags in (mmap.MAP_SHARED, mmap.MAP_PRIVATE, mmap.MAP_SHARED | 0x4000, mmap.MAP_PRIVATE | 0x4000):
        pages.append(mmap.mmap(-1, 160 << 20, flags | mmap.MAP_ANONYMOUS))
        for place in range(0, 160 << 20, 4096):
            pages[-1][place] = 1
    broke = True
except (OSError, MemoryError):
    pages.clear()

# include: answer.py
