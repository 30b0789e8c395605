# expected: TOO_MUCH wrong
# source: the value of an expression
"\n" + include("none.py") + "x = " + "lambda: " * 5_000 + "1"
