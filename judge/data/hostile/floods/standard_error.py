# expected: timeout died load_error output_limit
import sys, warnings
while True:
    sys.stderr.write("x" * 65536)
    warnings.warn("x" * 65536)
