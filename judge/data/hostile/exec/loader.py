# expected: wrong exception load_error
# the dynamic loader can run what may only be read
import glob, os
broke = False
for loader in glob.glob("/lib*/ld-linux-*") + glob.glob("/lib/*/ld-linux-*"):
    try:
        os.execv(loader, [loader, "/bin/true"])
    except OSError:
        pass

# include: answer.py
