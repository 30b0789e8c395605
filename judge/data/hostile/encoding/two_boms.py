# expected: load_error
# source: the value of an expression
"\ufeff\ufeffdef add(a, b):\n    return None\n"
