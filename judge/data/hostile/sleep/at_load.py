# expected: timeout died
import time
time.sleep(1000)
