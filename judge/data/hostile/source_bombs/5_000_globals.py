# expected: wrong
# source: the value of an expression
"\n" + include("none.py") + "".join(f"x{n} = {n}\n" for n in range(5_000))
