# expected: STARVED
import threading, time
while True:
    threading.Thread(target=time.sleep, args=(60,)).start()
