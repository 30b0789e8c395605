# expected: exited died
import os, sys
print("All tests passed. OK")
sys.stdout.flush()
sys.stderr.write("Ran 3 tests in 0.001s. OK")
os._exit(0)
