# expected: memory timeout died exception wrong load_error
import threading, time
while True:
    threading.Thread(target=time.sleep, args=(60,)).start()
