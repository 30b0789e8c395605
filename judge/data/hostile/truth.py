# === equal
assert check(1) == True
# === identical
assert check(1) is True
# === compared
assert check(5) > 3 and check(5) != 4
# === counted
assert len(check(1)) == 1 and 3 in check(1)
# === hashed
assert {check(1): 1}[True]
# === added
assert check(1) + 1 == 2
