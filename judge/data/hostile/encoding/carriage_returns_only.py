# expected: wrong
# source: the value of an expression
"def add(a, b):\r    return None\r"
