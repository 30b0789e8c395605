# expected: TOO_MUCH
# source: the value of an expression
"\n" + include("none.py") + "x = print" + "()" * 50_000
