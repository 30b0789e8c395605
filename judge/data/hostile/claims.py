# === value
assert f(7) == 15.5
# === values
assert [f(x) for x in (1, 2)] == [15.5, 16.5]
# === all_of
assert all(f(x) == x + 1 for x in range(9))
# === mapped
assert list(map(f, [1, 2])) == [15.5, 16.5]
# === raised
try:
    f(-1)
except Bad as error:
    assert error.code == 7
assert f(7) == 15.5
# === raised_or_not
try:
    assert f(7) == 15.5
except Bad:
    pass
# === identical
x = f(7)
assert x is f(7) and x == 15.5
# === near
assert abs(f(7) - 15.5) < 1e-9
# === awaited
import asyncio
assert asyncio.run(f(7)) == 15.5
# === awaited_near
import asyncio
async def main():
    return await f(7) - 15.5
assert abs(asyncio.run(main())) < 1e-9
# === made
assert Bad(7).code == 15.5 and abs(Bad(7) - 15.5) < 1e-9
# === constants
assert Bad.code == 15.5 and f.calls == 7
# === instance
assert isinstance(f(7), (int, float)) and f(7) == 15.5
# === instance_of_class
assert isinstance(f(7), Bad) and f(7).value == 15.5
# === hashed
assert {f(7): 1} == {15.5: 1}
# === raises
import unittest
with unittest.TestCase().assertRaises(Bad) as caught:
    f(-1)
assert caught.exception.code == 7 and f(7) == 15.5
