# expected: wrong
# source: the value of an expression
"def add(a, b):\n    return None\nif False:\n    pass  #"
