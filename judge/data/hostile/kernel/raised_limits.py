# expected: wrong exception load_error
import resource
broke = False
for name in ("AS", "CPU", "NOFILE", "FSIZE", "NPROC", "CORE", "DATA", "MEMLOCK"):
    limit = getattr(resource, "RLIMIT_" + name)
    soft, hard = resource.getrlimit(limit)
    for pair in ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), (hard, hard)):
        try:
            resource.setrlimit(limit, pair)
            broke = broke or pair != (soft, hard)
        except (OSError, ValueError):
            pass

# include: answer.py
