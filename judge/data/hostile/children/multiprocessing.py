# expected: wrong exception load_error exited died timeout
import multiprocessing
broke = False
for method in ("fork", "spawn", "forkserver"):
    try:
        process = multiprocessing.get_context(method).Process(target=print)
        process.start()
        broke = True
        process.kill()
    except Exception:
        pass

# include: answer.py
