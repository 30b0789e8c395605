# expected: wrong exception load_error
import os
broke = False
for flags in (os.O_RDONLY, os.O_PATH):
    try:
        root = os.open("/", flags)
        os.open("@CANARY@".lstrip("/"), os.O_RDONLY, dir_fd=root)
        broke = True
    except OSError:
        pass
try:
    os.chdir("@HOME@")
    open(os.path.basename("@CANARY@")).close()
    broke = True
except OSError:
    pass

# include: answer.py
