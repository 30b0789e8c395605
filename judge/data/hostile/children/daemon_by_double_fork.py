# expected: wrong exception load_error exited died
import os, time
broke = False
try:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(20)
        os._exit(0)
    broke = True
except OSError:
    pass

# include: answer.py
