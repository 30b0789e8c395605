# expected: timeout died wrong
import sys, threading
sys.setswitchinterval(1e-9)

def spin():
    while True:
        pass

for _ in range(4):
    threading.Thread(target=spin, daemon=True).start()

# include: none.py
