# expected: timeout died
# tries for ever; stops after 64 children, which live for three seconds
import os, time
children = 0
while children < 64:
    try:
        if os.fork() == 0:
            time.sleep(3)
            os._exit(0)
        children += 1
    except OSError:
        pass

def add(a, b):
    return a + b
