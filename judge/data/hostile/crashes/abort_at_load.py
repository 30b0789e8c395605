# expected: exited died load_error
import os
os.abort()
