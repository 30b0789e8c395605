# expected: wrong exception load_error
import os
broke = False
ways = (
    lambda: os.truncate("@CANARY@", 0),
    lambda: os.open("@CANARY@", os.O_RDONLY | os.O_TRUNC),
    lambda: os.open("@CANARY@", os.O_WRONLY | os.O_TRUNC),
    lambda: os.open("@CANARY@", os.O_RDWR | os.O_CREAT | os.O_TRUNC),
)
for way in ways:
    try:
        way()
        broke = True
    except OSError:
        pass

# include: answer.py
