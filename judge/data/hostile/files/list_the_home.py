# expected: wrong exception load_error
import glob, os
broke = bool(glob.glob("@HOME@/*") + glob.glob("@HOME@/.*"))
for folder in ("@HOME@", "/", "/root", "/home", "/tmp", "/etc", "/proc", "/dev/shm"):
    try:
        os.listdir(folder)
        broke = True
    except OSError:
        pass

# include: answer.py
