# === near
assert abs(Till(1) - 15.5) < 1e-9
# === equal
assert Till(1) == 15.5
# === reflected_equal
assert 15.5 == Till(1)
# === method_near
assert abs(Till(1).balance() - 15.5) < 1e-9
# === method_equal
assert Till(1).balance() == 15.5
# === greater
assert Till(1) > 15 and Till(1) < 16
# === twice
t = Till(1)
t - 15.5
assert t == 15.5
# === shown_before
t = Till(1)
t.near(15.5)
assert t.balance() == 15.5
# === hashed
assert {Till(1): 1}[15.5] == 1
# === remainder
assert Till(1) % 7 == 3
# === counted
assert sorted(Till(1)) == [1, 2]
# === two
assert Till(1) - 3 == Till(2) * 7.5
