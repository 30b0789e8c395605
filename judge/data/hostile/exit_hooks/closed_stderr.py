# expected: wrong
import atexit, os, sys
sys.stderr.close()
sys.stdout.close()
os.close(1)
os.close(2)
atexit.register(os._exit, 0)
sys.exit = lambda code=0: os._exit(0)

# include: none.py
