# === sum
assert Vector(1, 2) + Vector(3, 4) == Vector(4, 6)
# === reflected_sum
assert Vector(4, 6) == Vector(1, 2) + Vector(3, 4)
# === method
assert Vector(1, 2).swapped() == Vector(2, 1)
# === function
assert make(7) == Vector(4, 6)
# === not_unequal
assert not make(7) != Vector(4, 6)
# === list
assert [make(7), make(8)] == [Vector(4, 6), Vector(5, 7)]
# === scaled
assert Vector(1, 2) * 3 == Vector(3, 6)
# === inside
assert make(7) in [Vector(9, 9), Vector(4, 6)]
# === among_parts
assert Vector(4, 6) in Vector(1, 2).parts
# === key
assert {make(7): 5}[Vector(4, 6)] == 5
# === set
assert len({make(7), Vector(4, 6)}) == 1
# === index
assert [Vector(9, 9), make(7)].index(Vector(4, 6)) == 1
# === counted
assert [make(7), make(8)].count(Vector(4, 6)) == 1
# === tuple
assert (make(7), 3) == (Vector(4, 6), 3)
# === dict
assert {"a": make(7)} == {"a": Vector(4, 6)}
# === attribute
assert Vector(1, 2).other == Vector(2, 1)
# === keyword
assert make(7) == Vector(x=4, y=6)
# === twice
v = Vector(4, 6)
make(7)
assert make(7) == v
# === unittest
import unittest
unittest.TestCase().assertEqual(make(7), Vector(4, 6))
# === class_method
assert Vector.unit() == Vector(3, 5)
# === operator
import operator
assert operator.eq(make(7), Vector(4, 6))
# === moved
v = Vector(1, 2)
v.move(3, 4)
assert v == Vector(4, 6)
# === expected_first
v = Vector(4, 6)
assert v == make(7)
# === expected_in_a_list
assert [Vector(4, 6)] == [make(7)] and Vector(5, 7) in [make(8)]
# === shown_first
v = Vector(4, 6)
str(v)
assert make(7) == v
# === differs
assert make(7) != make(8)
# === distinct
assert len({make(7), make(8), make(9)}) == 3
# === order_of_answers
assert make(7) < make(8) and make(8) > make(7)
