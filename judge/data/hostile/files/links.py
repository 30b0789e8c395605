# expected: wrong exception load_error
import os
broke = False
for folder in ("/tmp", "/dev/shm", "/var/tmp", "@HOME@"):
    for make in (os.symlink, os.link):
        try:
            make("@CANARY@", folder + "/rematch_hostile_" + make.__name__)
            broke = True
        except OSError:
            pass

# include: answer.py
