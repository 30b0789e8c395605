# expected: exception load_error
add = 3
