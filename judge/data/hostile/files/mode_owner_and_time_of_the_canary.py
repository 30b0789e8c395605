# expected: wrong exception load_error
import os
broke = False
ways = (
    lambda: os.chmod("@CANARY@", 0o777),
    lambda: os.chown("@CANARY@", os.getuid(), os.getgid()),
    lambda: os.utime("@CANARY@", (1, 1)),
    lambda: os.setxattr("@CANARY@", "user.rematch_hostile", b"x"),
)
for way in ways:
    try:
        way()
        broke = True
    except OSError:
        pass

# include: answer.py
