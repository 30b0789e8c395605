# expected: wrong exception load_error
# a handle that may only name a file is opened again for reading
import os
broke = False
try:
    handle = os.open("@CANARY@", os.O_PATH)
    for path in (f"/proc/self/fd/{handle}", f"/dev/fd/{handle}", f"/proc/thread-self/fd/{handle}"):
        try:
            os.open(path, os.O_RDONLY)
            broke = True
        except OSError:
            pass
    os.open("", os.O_RDONLY, dir_fd=handle)
    broke = True
except OSError:
    pass

# include: answer.py
