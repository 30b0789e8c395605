# === AssertionError
import unittest
with unittest.TestCase().assertRaises(AssertionError):
    assert add(1, 2) == 3
# === Exception
import unittest
with unittest.TestCase().assertRaises(Exception):
    assert add(1, 2) == 3
# === BaseException
import unittest
with unittest.TestCase().assertRaises(BaseException):
    assert add(1, 2) == 3
# === (AssertionError, ValueError)
import unittest
with unittest.TestCase().assertRaises((AssertionError, ValueError)):
    assert add(1, 2) == 3
