# === near
assert abs(Account(1).balance() - 15.5) < 1e-9
# === near_reflected
assert abs(15.5 - Account(1).balance()) < 1e-9
# === between
assert -1e-9 < Account(1).balance() - 15.5 < 1e-9
# === contains
assert 15.5 in Account(1).items()
# === contains_all
assert all(x in Account(1).items() for x in (1, 2))
# === not_in
assert not (3 not in f(3))
# === attribute
assert abs(Account(1).value - 3) < 1e-9
# === item
assert abs(f(1)[0] - 3) < 1e-9
# === element
a, b = pair()
assert abs(a - 3) < 1e-9 and abs(b['x'] - 3) < 1e-9
# === difference
assert f(1, 2) - 3 == 0
# === rounded
assert round(f(1) - 3.3, 6) == 0
# === rounded_distance
assert round(abs(f(1) - 3.3), 6) == 0
# === as_float
assert float(f(1) - 3.3) == 0
# === as_int
assert int(f(1) - 3) == 0
# === remainder
assert f(1) % 7 == 0
# === exclusive_or
assert f(1) ^ 7 == 0
# === sum
assert f(1) + -7 == 0
# === sum_of_list
assert abs(sum([f(1), -7])) < 1e-9
# === isclose
import math
assert math.isclose(f(1) - 7, 0, abs_tol=1e-9)
# === set_difference
assert len(f(1) - {1, 2}) == 0
# === list_of_difference
assert list(Account(1).tags() - {1, 2}) == []
# === symmetric_difference
assert len(f(1) ^ {1, 2}) == 0
# === date
import datetime
assert (Account(1).opened() - datetime.date(2020,1,1)).days == 0
# === startswith
assert Account(1).name().startswith('Bob')
# === isdigit
assert f(1).isdigit()
# === issuperset
assert f(1).issuperset({1, 2})
# === two_methods
assert abs(Account(1).balance() - Account(2).balance()) == 0
# === two_calls
assert abs(f(1) - f(2)) < 1e-9
# === made_near
assert abs(Account(1) - 15.5) < 1e-9
# === made_and_given
assert abs(Account(1) - f(1)) < 1e-9
# === made_and_method
assert 0 == abs(Account(1) - Account(1).balance())
# === index
assert [0, 1][f(1) - 5] == 0
# === range
assert list(range(f(1) - 5)) == []
# === ratio
assert f(1) / 3 == 1
# === substring
assert 'x' in f(1)
# === in_a_list
assert [f(1) - 3] == [0]
# === negated
assert -(f(1) - 3) == 0
# === square
assert (f(1) - 3) ** 2 < 1e-9
# === any_of
assert any(x - 3 == 0 for x in pair())
# === operators
import operator
assert operator.sub(f(1), 3) == 0 and operator.contains(f(1), 3)
# === context
with f(1) as x:
    assert abs(x - 3) < 1e-9
