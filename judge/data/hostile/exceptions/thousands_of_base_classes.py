# expected: exception
Failure = Exception
for number in range(1000):
    Failure = type("F" * 1000, (Failure,), {})

def add(a, b):
    raise Failure(number)
