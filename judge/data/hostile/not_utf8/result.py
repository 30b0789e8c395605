# expected: opaque wrong exception
def add(a, b):
    return [bytes(range(256)), chr(0xD800) + chr(0xDFFF), chr(0), bytearray(b"x"), memoryview(b"x")]
