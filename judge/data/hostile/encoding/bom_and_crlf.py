# expected: wrong
# source: the value of an expression
"\ufeffdef add(a, b):\r\n    return None\r\n"
