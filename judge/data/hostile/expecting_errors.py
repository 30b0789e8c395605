# === own_context

class Case:
    class assertRaises:
        def __init__(self, *kinds): self.exception = None
        def __enter__(self): return self
        def __exit__(self, kind, error, trace):
            self.exception = error
            return True
case = Case()
with case.assertRaises(Exception):
    assert add(1, 2) == 3
# === another_kind
import unittest
try:
    with unittest.TestCase().assertRaises(KeyError):
        assert add(1, 2) == 3
except BaseException:
    pass
# === another_text
import unittest
try:
    with unittest.TestCase().assertRaisesRegex(Exception, 'no such'):
        assert add(1, 2) == 3
except BaseException:
    pass
# === caught_inside
import unittest
with unittest.TestCase().assertRaises(Exception):
    try:
        assert add(1, 2) == 3
    except BaseException:
        pass
    raise ValueError
# === warnings_instead
import unittest, warnings
try:
    with unittest.TestCase().assertWarns(UserWarning):
        assert add(1, 2) == 3
except BaseException:
    pass
# === something_behind
import unittest
with unittest.TestCase().assertRaises(Exception):
    assert add(1, 2) == 3
    raise ValueError
# === loop_around
import unittest
with unittest.TestCase().assertRaises(Exception):
    for _ in range(2):
        assert add(1, 2) == 3
    [][0]
# === variable_before
import unittest
with unittest.TestCase().assertRaisesRegex(Exception, ''):
    x = add(1, 2)
    assert x == 3
    {}['x']
# === two_asserts
import unittest
with unittest.TestCase().assertRaises(Exception):
    assert add(1, 2) == 3
    assert [][0]
# === suppressed_around
import contextlib, unittest
with contextlib.suppress(BaseException):
    with unittest.TestCase().assertRaises(ZeroDivisionError):
        assert add(1, 2) == 3
