# expected: load_error memory died timeout wrong
# source: the value of an expression
"\n" + include("none.py") + "x = " + "-" * 100_000 + "1"
