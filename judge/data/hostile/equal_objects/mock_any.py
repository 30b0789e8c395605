# expected: REFUSED opaque
from unittest import mock

def add(a, b):
    return mock.ANY
