# expected: wrong exception load_error
import os
broke = False
for program in ("/bin/true", "/usr/bin/true"):
    try:
        os.execv(program, ["true"])
    except OSError:
        pass

# include: answer.py
