# expected: pass pass pass
# source: the value of an expression
"\ufeffdef add(a, b):\n    return a + b\n"
