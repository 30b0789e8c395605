# expected: wrong exception load_error exited died protocol timeout
import struct
struct.pack = lambda *_: bytes([255, 255, 255, 127])
struct.unpack = struct.unpack_from = lambda *_: (0,)
struct.Struct = lambda *_: struct

# include: none.py
