# expected: timeout died
while True:
    pass
