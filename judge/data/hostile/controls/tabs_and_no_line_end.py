# expected: pass pass pass
# source: the value of an expression
"def add(a, b):\n\tif a:\n\t\tpass\n\treturn a + b"
