# expected: wrong exception load_error
add = print
