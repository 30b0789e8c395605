# expected: pass pass pass
# source: the value of an expression
"def add(a, b):\r\n    '''sum'''\r\n    return a + b\r\n"
