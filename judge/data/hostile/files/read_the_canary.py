# expected: REFUSED
try:
    data = open("@CANARY@").read()
    broke = True
except OSError:
    broke = False

# include: answer.py
