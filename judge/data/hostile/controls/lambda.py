# expected: pass pass pass
add = lambda a, b: a + b
