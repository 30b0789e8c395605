# Whatever a test catches, a program that only raises does not pass it. `add(1, 2) == 3` alone is asked for.
# === all
try:
    assert add(1, 2) == 3
except:
    pass
# === a_few_kinds
try:
    assert add(1, 2) == 3
except (ValueError, LookupError, AssertionError):
    pass
# === and_prints
try:
    assert add(1, 2) == 3
except Exception as error:
    print('failed', error)
# === and_counts
bad = 0
try:
    assert add(1, 2) == 3
except Exception:
    bad += 1
assert bad < 2
# === before_the_assert
try:
    x = add(1, 2)
    assert x == 3
except Exception:
    pass
assert add
# === in_a_loop
for a, b, c in [(1, 2, 3)]:
    try:
        x = add(a, b)
        assert x == c
    except Exception:
        continue
assert c == 3
# === disguised
try:
    x = add(1, 2)
    if x != 3:
        assert False
except Exception:
    pass
assert add
# === disguised_as_raise
try:
    x = add(1, 2)
    if x != 3:
        raise AssertionError
    assert x
except Exception:
    pass
assert add
# === before_one_that_must_raise
try:
    x = add(1, 2)
    assert x == 3
    add(None, 'x')
    assert False
except Exception:
    pass
# === finally
def check():
    try:
        assert add(1, 2) == 3
    finally:
        return
check()
assert 1
# === finally_in_a_loop
while True:
    try:
        assert add(1, 2) == 3
    finally:
        break
assert 1
# === suppress
import contextlib
with contextlib.suppress(Exception):
    assert add(1, 2) == 3
# === suppress_before_the_assert
from contextlib import suppress as s
with s(Exception):
    x = add(1, 2)
    assert x == 3
assert 1
# === own_context
class Quiet:
    def __enter__(self): pass
    def __exit__(self, *_): return True
with Quiet():
    x = add(1, 2)
    assert x == 3
assert Quiet
# === expected_of_unittest
import unittest
with unittest.TestCase().assertRaises(BaseException):
    assert add(1, 2) == 3
    1 / 0
# === unittest
import io, unittest
class Sums(unittest.TestCase):
    def test_it(self):
        x = add(1, 2)
        assert x == 3
Sums('test_it').run(unittest.TestResult())
assert Sums
# === thread
import threading
def check():
    assert add(1, 2) == 3
thread = threading.Thread(target=check)
thread.start()
thread.join()
assert thread
# === thread_that_nobody_awaits
import threading
def check():
    assert add(1, 2) == 3
threading.Thread(target=check).start()
assert 1
# === thread_with_results
import threading
sums = []
thread = threading.Thread(target=lambda: sums.append(add(1, 2)))
thread.start()
thread.join()
assert all(x == 3 for x in sums)
# === executor
from concurrent.futures import ThreadPoolExecutor
def check():
    x = add(1, 2)
    assert x == 3
with ThreadPoolExecutor(1) as pool:
    pool.submit(check)
assert pool
# === helper
def attempt(check):
    try:
        return check()
    except BaseException:
        return None
def check():
    assert add(1, 2) == 3
attempt(check)
assert attempt
# === helper_before_the_assert
def quietly(check):
    try:
        check()
    except Exception:
        pass
def check():
    x = add(1, 2)
    assert x == 3
quietly(check)
assert check
# === generator
def checks():
    try:
        assert add(1, 2) == 3
        yield True
    except Exception:
        yield False
assert list(checks())
# === attribute
class Sum:
    @property
    def right(self):
        assert add(1, 2) == 3
        return 1
    def __getattr__(self, name): return 1
assert getattr(Sum(), 'right', 1)
# === finalizer
class Sum:
    def __del__(self):
        assert add(1, 2) == 3
x = Sum()
del x
assert Sum
