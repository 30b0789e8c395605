# expected: load_error
# source: the value of an expression
"\n" + include("none.py") + "x = 1" + "+1" * 200_000
