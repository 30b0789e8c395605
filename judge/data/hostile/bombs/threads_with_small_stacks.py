# expected: memory timeout died exception wrong load_error
import threading, time
threading.stack_size(32768)
threads = []

def breed():
    while True:
        try:
            threads.append(threading.Thread(target=breed))
            threads[-1].start()
        except RuntimeError:
            time.sleep(0.001)

breed()
