# expected: wrong exception load_error
# what other programs will import
import os
library = os.path.dirname(os.__file__)
broke = False
ways = (
    lambda: open(os.__file__, "a").close(),
    lambda: open(library + "/rematch_hostile.py", "x").close(),
    lambda: open(library + "/__pycache__/rematch_hostile.pyc", "x").close(),
    lambda: os.mkdir(library + "/rematch_hostile"),
    lambda: os.utime(library + "/this.py"),
    lambda: os.symlink("@CANARY@", library + "/rematch_hostile_link.py"),
)
for way in ways:
    try:
        way()
        broke = True
    except OSError:
        pass

# include: answer.py
