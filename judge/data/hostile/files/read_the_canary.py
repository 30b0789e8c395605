# expected: wrong exception load_error
try:
    data = open("@CANARY@").read()
    broke = True
except OSError:
    broke = False

# include: answer.py
