# expected: wrong exception load_error
import os, pathlib, shutil
broke = False
ways = (
    lambda: os.rename("@CANARY@", "@CANARY@.rematch_hostile"),
    lambda: shutil.move("@CANARY@", "/tmp/rematch_hostile"),
    lambda: pathlib.Path("@CANARY@").unlink(),
    lambda: os.remove("@CANARY@"),
)
for way in ways:
    try:
        way()
        broke = True
    except OSError:
        pass

# include: answer.py
