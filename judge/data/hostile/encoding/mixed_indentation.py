# expected: load_error
# source: the value of an expression
"def add(a, b):\n        c = a\n\treturn c\n"
