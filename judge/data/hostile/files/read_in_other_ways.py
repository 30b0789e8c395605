# expected: wrong exception load_error
import codecs, io, linecache, mmap, os, pathlib
broke = bool(linecache.getline("@CANARY@", 1))
ways = (
    lambda: os.open("@CANARY@", os.O_RDONLY),
    lambda: io.open_code("@CANARY@"),
    lambda: codecs.open("@CANARY@"),
    lambda: pathlib.Path("@CANARY@").read_bytes(),
    lambda: mmap.mmap(os.open("@CANARY@", os.O_RDONLY | os.O_NOATIME), 0, prot=mmap.PROT_READ),
    lambda: os.open("/proc/self/root@CANARY@", os.O_RDONLY),
    lambda: os.open("/proc/@PARENT@/root@CANARY@", os.O_RDONLY),
    lambda: os.open("/usr/lib/../..@CANARY@", os.O_RDONLY),
)
for way in ways:
    try:
        way()
        broke = True
    except (OSError, ValueError):
        pass

# include: answer.py
