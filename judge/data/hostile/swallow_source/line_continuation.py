# expected: wrong load_error
# source: the value of an expression
# without a line end: what follows would belong to the comment, or to the line
"def add(a, b):\n    return None\nif 0: \\"
