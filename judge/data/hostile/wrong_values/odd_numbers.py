# expected: opaque wrong exception
import decimal
answers = [[-0.0, float("inf"), 1e309, True, 1.0], decimal.Decimal("sNaN"), decimal.Decimal("Infinity")]

def add(a, b):
    return answers.pop()
