# expected: load_error memory died timeout
# source: the value of an expression
"\n" + include("none.py") + "x = " + "(" * 10_000 + ")" * 10_000
