# expected: load_error
The function add returns the sum of a and b.
