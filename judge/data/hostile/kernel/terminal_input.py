# expected: wrong exception load_error
# pushes keys into the terminal of the tester
import fcntl, os, termios
broke = False
for fd in (0, 1, 2):
    try:
        fcntl.ioctl(fd, termios.TIOCSTI, b" ")
        broke = True
    except OSError:
        pass
for path in ("/dev/tty", "/dev/pts/0", "/dev/ptmx", "/dev/console"):
    try:
        os.open(path, os.O_RDWR | os.O_NOCTTY)
        broke = True
    except OSError:
        pass

# include: answer.py
