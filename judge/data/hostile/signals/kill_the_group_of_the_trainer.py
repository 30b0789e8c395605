# expected: wrong exception load_error
import os, signal
broke = False
for send in (lambda: os.killpg(@GROUP@, signal.SIGTERM), lambda: os.kill(-@GROUP@, signal.SIGKILL)):
    try:
        send()
        broke = True
    except OSError:
        pass

# include: answer.py
