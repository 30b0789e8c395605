# expected: protocol wrong died timeout opaque
# built once here, decoded sixty times by the judge, in quadratic time
numbers = {k * (2**61 - 1) for k in range(1, 3000)}

def add(a, b):
    return [numbers] * 60
