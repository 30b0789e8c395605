# expected: exception load_error
# source: the value of an expression
""
