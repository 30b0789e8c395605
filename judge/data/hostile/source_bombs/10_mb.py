# expected: load_error
# source: the value of an expression
"\n" + include("none.py") + "# x\n" * 2_500_000
