# expected: wrong
# source: the value of an expression
# reads as if the sum came back; what follows the # is a comment
"def add(a, b):\n    return None #\u202e \u2066 a + b \u2069 \u2066\n"
