# expected: ENDED load_error
import os
os.abort()
