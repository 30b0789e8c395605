# === eight_threads_with_a_lock
import threading
def count(n, times=50):
    total, lock = [0], threading.Lock()
    def work():
        for _ in range(times):
            with lock:
                total[0] += 1
    threads = [threading.Thread(target=work) for _ in range(n)]
    for t in threads: t.start()
    for t in threads: t.join()
    return total[0]
# --- test
assert count(8) == 400
# --- test
assert count(16) == 800
# === hundred_threads
from threading import Thread
def squares(n):
    out = [None] * n
    def put(i): out[i] = i * i
    ts = [Thread(target=put, args=(i,)) for i in range(n)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    return out
# --- test
assert squares(100) == [i * i for i in range(100)]
# === executor_map
from concurrent.futures import ThreadPoolExecutor
def parallel_lengths(words):
    with ThreadPoolExecutor(max_workers=8) as pool:
        return list(pool.map(len, words))
# --- test
assert parallel_lengths(["a", "bb", "ccc"] * 10) == [1, 2, 3] * 10
# === executor_as_completed
from concurrent.futures import ThreadPoolExecutor, as_completed
def total(values):
    with ThreadPoolExecutor() as pool:
        return sum(f.result() for f in as_completed([pool.submit(pow, v, 2) for v in values]))
# --- test
assert total(range(20)) == 2470
# === producer_consumer
import queue, threading
def transfer(items):
    q, seen = queue.Queue(maxsize=2), []
    def consume():
        while (item := q.get()) is not None:
            seen.append(item)
            q.task_done()
    worker = threading.Thread(target=consume)
    worker.start()
    for item in items: q.put(item)
    q.put(None)
    worker.join()
    return seen
# --- test
assert transfer([3, 1, 2]) == [3, 1, 2]
# === condition_print_in_order
import threading
class Foo:
    def __init__(self):
        self.second, self.third = threading.Event(), threading.Event()
    def first(self, out):
        out.append("first"); self.second.set()
    def second_(self, out):
        self.second.wait(); out.append("second"); self.third.set()
    def third_(self, out):
        self.third.wait(); out.append("third")
def run(order):
    foo, out = Foo(), []
    todo = [foo.first, foo.second_, foo.third_]
    ts = [threading.Thread(target=todo[i - 1], args=(out,)) for i in order]
    for t in ts: t.start()
    for t in ts: t.join()
    return out
# --- test
assert run([3, 1, 2]) == ["first", "second", "third"]
# === timer_and_event
import threading
def fires(seconds):
    done = threading.Event()
    threading.Timer(seconds, done.set).start()
    return done.wait(5)
# --- test
assert fires(0.01) is True
# === semaphore_bound
import threading, time
def most_at_once(workers, limit):
    gate, lock, now, most = threading.Semaphore(limit), threading.Lock(), [0], [0]
    def work():
        with gate:
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
            time.sleep(0.001)
            with lock:
                now[0] -= 1
    ts = [threading.Thread(target=work) for _ in range(workers)]
    [t.start() for t in ts]; [t.join() for t in ts]
    return most[0]
# --- test
assert most_at_once(12, 3) <= 3
# === thread_local_data
import threading
def private_values(n):
    local, out = threading.local(), {}
    def work(i):
        local.value = i
        out[i] = local.value
    ts = [threading.Thread(target=work, args=(i,)) for i in range(n)]
    [t.start() for t in ts]; [t.join() for t in ts]
    return out
# --- test
assert private_values(5) == {i: i for i in range(5)}
# === pool_of_dummy_processes
# expected: exception
from multiprocessing.dummy import Pool
def cubes(values):
    with Pool(4) as pool:
        return pool.map(lambda v: v ** 3, values)
# --- test
assert cubes([1, 2, 3]) == [1, 8, 27]
# === barrier
import threading
def meet(n):
    barrier, out = threading.Barrier(n), []
    def work(): out.append(barrier.wait() >= 0)
    ts = [threading.Thread(target=work) for _ in range(n)]
    [t.start() for t in ts]; [t.join() for t in ts]
    return all(out) and len(out) == n
# --- test
assert meet(6)
# === daemon_left_behind
import threading, time
def answer():
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    return 42
# --- test
assert answer() == 42
# === lock_protected_account
# settings: {"stateful": True}
import threading
class Account:
    def __init__(self, balance=0):
        self.balance = balance
        self._lock = threading.RLock()
    def deposit(self, amount):
        with self._lock:
            self.balance += amount
            return self.balance
# --- test
import threading
a = Account(10)
ts = [threading.Thread(target=a.deposit, args=(5,)) for _ in range(10)]
[t.start() for t in ts]; [t.join() for t in ts]
assert a.balance == 60
# === script_with_twenty_threads
import threading
n = int(input())
results = [0] * n
def job(i): results[i] = sum(range(i + 1))
jobs = [threading.Thread(target=job, args=(i,)) for i in range(n)]
for j in jobs: j.start()
for j in jobs: j.join()
print(*results)
# --- stdin
20
# --- stdout
0 1 3 6 10 15 21 28 36 45 55 66 78 91 105 120 136 153 171 190
# === asyncio_run
import asyncio
async def double(x):
    await asyncio.sleep(0)
    return 2 * x
def run(values):
    async def main():
        return await asyncio.gather(*map(double, values))
    return asyncio.run(main())
# --- test
assert run([1, 2]) == [2, 4]
# === processes
# expected: exception
from multiprocessing import Pool
def work(x): return x * x
def squares(values):
    with Pool(2) as pool:
        return pool.map(work, values)
# --- test
assert squares([1, 2, 3]) == [1, 4, 9]
