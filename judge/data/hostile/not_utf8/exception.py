# expected: exception
Failure = type("Fehl" + chr(0xE4) + chr(0x1F600), (Exception,), {})

def add(a, b):
    raise Failure(chr(0xD800), bytes(range(256)), chr(0))
