# expected: exited died timeout
# a timer of its own that ends the process
import faulthandler, os, time
faulthandler.dump_traceback_later(0.2, exit=True, file=os.open(os.devnull, os.O_WRONLY))

def add(a, b):
    time.sleep(1)
