# expected: opaque wrong exception
import collections, decimal, enum, fractions

class Colour(enum.IntEnum):
    RED = -7
    def __eq__(self, other):
        return True
    __hash__ = int.__hash__

class Money(decimal.Decimal):
    def __eq__(self, other):
        return True
    __hash__ = decimal.Decimal.__hash__
    def __str__(self):
        return "3"
    as_tuple = lambda self: decimal.Decimal(3).as_tuple()

class Part(fractions.Fraction):
    numerator = denominator = property(lambda self: 3)

class Pair(collections.namedtuple("Pair", "x y")):
    def __eq__(self, other):
        return True

ANSWERS = [Colour.RED, Money("-7.5"), Pair(1, Part(1, 7))]

def add(a, b):
    return ANSWERS.pop()
