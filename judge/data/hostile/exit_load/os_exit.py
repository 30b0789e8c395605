# expected: exited died
import os
os._exit(0)
