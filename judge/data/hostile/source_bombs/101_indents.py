# expected: load_error memory died timeout
# source: the value of an expression
"\n" + include("none.py") + "".join(" " * n + "if 1:\n" for n in range(101))
