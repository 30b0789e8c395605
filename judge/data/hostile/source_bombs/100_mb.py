# expected: load_error
# source: the value of an expression
" " * 100_000_000
