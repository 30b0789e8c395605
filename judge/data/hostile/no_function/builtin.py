# expected: REFUSED
add = print
