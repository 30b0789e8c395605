# expected: wrong exception load_error
# a file that may be read: emptying it on opening needs no right to write. This one is empty already
import os
library = os.path.dirname(os.__file__)
broke = False
for name in ("/urllib/__init__.py", "/pydoc_data/__init__.py"):
    if os.stat(library + name).st_size == 0:
        for way in (lambda p: os.open(p, os.O_RDONLY | os.O_TRUNC), lambda p: os.truncate(p, 0)):
            try:
                way(library + name)
                broke = True
            except OSError:
                pass

# include: answer.py
