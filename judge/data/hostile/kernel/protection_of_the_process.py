# expected: wrong exception load_error
# include: kernel.py

# may be traced and dumped again; parent-death signal, seccomp, capabilities, securebits, tracer
CALLS = ((4, 1), (1, 0), (24, 0), (28, 0), (8, 1), (0x59616D61, @PARENT@), (36, 1), (47, 2, 1), (35, 6, 0))
broke = any(syscall(157, 167, *call) >= 0 for call in CALLS)

# include: answer.py
