# expected: load_error memory died timeout
# source: the value of an expression
"\n" + include("none.py") + "x = print" + "()" * 50_000
