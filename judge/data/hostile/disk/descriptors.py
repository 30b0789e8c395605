# expected: wrong exception load_error exited died
# stops at 5,000
import os
handles = []
try:
    while len(handles) < 5000:
        handles.append(os.open(os.devnull, os.O_RDONLY))
except OSError:
    pass
broke = len(handles) >= 1000

# include: answer.py
