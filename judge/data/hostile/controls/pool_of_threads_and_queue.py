# expected: pass pass pass
from concurrent.futures import ThreadPoolExecutor
import queue

def add(a, b):
    results = queue.Queue()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(results.put, (a, b)))
    return results.get() + results.get()
