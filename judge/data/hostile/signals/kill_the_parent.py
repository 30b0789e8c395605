# expected: wrong exception load_error
import os, signal
broke = False
for number in (0, signal.SIGSTOP, signal.SIGKILL):
    try:
        os.kill(os.getppid(), number)
        broke = True
    except OSError:
        pass

# include: answer.py
