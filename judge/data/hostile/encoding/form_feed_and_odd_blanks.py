# expected: load_error
# source: the value of an expression
"\f\ndef add(a, b):\u00a0\n  return None\n"
