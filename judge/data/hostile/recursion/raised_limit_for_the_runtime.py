# expected: memory timeout died exception wrong load_error exited opaque
# the runtime's own encoder recurses without a guard
import sys
sys.setrecursionlimit(10**9)

def add(a, b):
    answer = []
    for _ in range(200_000):
        answer = [answer]
    return answer
