# expected: exited
import sys
sys.exit(0)
