# expected: wrong exception load_error
import os, signal
broke = False
signal.signal(signal.SIGTERM, signal.SIG_IGN)
try:
    os.killpg(0, signal.SIGTERM)
    broke = os.getpgrp() != os.getpid()  # its own group may be its own
except OSError:
    pass

# include: answer.py
