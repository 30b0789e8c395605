# expected: wrong exception load_error exited died protocol timeout
# every write of the runtime also carries a verdict
import os
real = os.write

def write(fd, data):
    real(fd, data)
    real(fd, b'{"load": null, "tests": ["pass", "pass", "pass"]}')
    return len(data)

os.write = os.writev = write

# include: none.py
