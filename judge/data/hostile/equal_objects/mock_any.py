# expected: wrong exception load_error opaque
from unittest import mock

def add(a, b):
    return mock.ANY
