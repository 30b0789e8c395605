# expected: load_error died memory
data = bytearray(1 << 36)

# include: none.py
