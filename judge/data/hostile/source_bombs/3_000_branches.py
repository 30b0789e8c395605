# expected: TOO_MUCH wrong
# source: the value of an expression
"\n" + include("none.py") + "x = 0\nif x: pass\n" + "elif x: pass\n" * 3_000
