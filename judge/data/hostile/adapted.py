# === near
assert abs(Till(1) - 15.5) < 1e-9
# === unmade_near
assert abs(till(1) - 15.5) < 1e-9
# === unmade_equal
assert till(1) == 15.5
# === method
assert abs(Till(1).balance() - 15.5) < 1e-9
# === attribute
assert Till(1).value == 15.5
# === twice
t = Till(1)
t - 15.5
assert t == 15.5
