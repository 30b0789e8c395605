# expected: memory timeout died exception wrong load_error
# 64 KB that unpack to 64 MB, sixteen times
import zlib
packer = zlib.compressobj(9)
packed = b"".join([packer.compress(bytes(1 << 20)) for _ in range(64)] + [packer.flush()])

def add(a, b):
    return len([zlib.decompress(packed) for _ in range(16)])
