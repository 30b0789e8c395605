# expected: load_error
# source: the value of an expression
"def add(a, b):\n    return None\n\0"
