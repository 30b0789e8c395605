# expected: wrong exception load_error
# semaphores in /dev/shm; inotify and fanotify watches on the home
import ctypes, _multiprocessing
broke = False
try:
    _multiprocessing.SemLock(1, 0, 1, "/rematch_hostile", False)
    broke = True
except OSError:
    pass
libc = ctypes.CDLL(None)
watch = libc.inotify_init1(0)
broke = broke or libc.inotify_add_watch(watch, b"@HOME@", 0xFFF) >= 0 or libc.fanotify_init(0, 0) >= 0

# include: answer.py
