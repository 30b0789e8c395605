# expected: SLOW
while True:
    pass
