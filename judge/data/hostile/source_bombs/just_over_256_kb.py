# expected: load_error
# source: the value of an expression
"\n" + include("none.py") + "#" * (256 << 10)
