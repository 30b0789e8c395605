# === taken
import itertools
assert list(itertools.islice(add(1, 2), 3)) == [3, 5, 8]
# === sent
g = add(1, 2)
next(g)
assert g.send(3) == 7 and g.send(4) == 9
# === given_on
assert total(add(1, 2)) == 11
