# expected: wrong exception load_error exited died timeout
# include: kernel.py

# the system call exit ends this thread, not the process
import threading
broke = False

def leave():
    syscall(60, 93, 0)

threading.Thread(target=leave).start()

# include: answer.py
