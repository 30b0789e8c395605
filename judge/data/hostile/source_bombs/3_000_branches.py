# expected: load_error memory died timeout wrong
# source: the value of an expression
"\n" + include("none.py") + "x = 0\nif x: pass\n" + "elif x: pass\n" * 3_000
