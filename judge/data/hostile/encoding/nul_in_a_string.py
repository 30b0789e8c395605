# expected: load_error
# source: the value of an expression
"x = '\0'\ndef add(a, b):\n    return x\n"
