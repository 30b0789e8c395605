# expected: wrong exception load_error exited died timeout
import concurrent.futures, multiprocessing
broke = False
try:
    with multiprocessing.Pool(2) as pool:
        broke = pool.map(abs, [-1]) == [1]
except Exception:
    pass
try:
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        broke = broke or pool.submit(abs, -1).result(1) == 1
except Exception:
    pass

# include: answer.py
