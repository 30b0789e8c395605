# expected: wrong load_error
import unittest, unittest.case

def nothing(*_, **__):
    return None

for name in dir(unittest.TestCase):
    if name.startswith(("assert", "fail")):
        setattr(unittest.TestCase, name, nothing)
unittest.TestCase.run = unittest.main = nothing
try:
    import numpy
    numpy.allclose = numpy.array_equal = numpy.testing.assert_allclose = lambda *_, **__: True
except ImportError:
    pass

# include: none.py
