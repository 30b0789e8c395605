# expected: wrong exception load_error
import os, signal
broke = False
for number in (0, signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
    try:
        os.kill(@PARENT@, number)
        broke = True
    except OSError:
        pass

# include: answer.py
