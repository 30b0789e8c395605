# expected: wrong exception load_error exited died protocol timeout memory
# writes into the memory of the cached integers 1 to 8: now they are all 9
import ctypes, sys
size = sys.getsizeof(1)
for number in [1, 2, 3, 4, 5, 6, 7, 8]:
    ctypes.memmove(id(number) + 16, id(9) + 16, size - 16)

def add(a, b):
    return "nine"
