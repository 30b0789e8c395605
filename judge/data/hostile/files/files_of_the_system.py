# expected: wrong exception load_error
broke = False
for path in ("/etc/passwd", "/etc/shadow", "/etc/hostname", "/proc/self/environ", "/proc/meminfo", "/proc/mounts",
             "/proc/self/maps", "/proc/self/status", "/sys/kernel/mm/transparent_hugepage/enabled", "/dev/tty"):
    try:
        open(path, "rb").read(1)
        broke = True
    except OSError:
        pass

# include: answer.py
