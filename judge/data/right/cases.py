# === two_sum_exists
n, target = map(int, input().split())
seen, ok = set(), False
for x in map(int, input().split()):
    ok |= target - x in seen
    seen.add(x)
print("YES" if ok else "NO")
# --- stdin
4 9
2 7 11 15
# --- stdout
YES
# --- stdin
3 5
1 1 1
# --- stdout
NO
# --- stdin
2 4
2 2
# --- stdout
YES
# --- stdin
1 2
1
# --- stdout
NO
# === grid_paths_bfs
from collections import deque
h, w = map(int, input().split())
g = [input() for _ in range(h)]
q, d = deque([(0, 0)]), {(0, 0): 0}
while q:
    r, c = q.popleft()
    for a, b in ((r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)):
        if 0 <= a < h and 0 <= b < w and g[a][b] == "." and (a, b) not in d:
            d[a, b] = d[r, c] + 1
            q.append((a, b))
print(d.get((h - 1, w - 1), -1))
# --- stdin
2 2
..
..
# --- stdout
2
# --- stdin
2 3
.#.
.#.
# --- stdout
-1
# --- stdin
3 3
..#
#..
##.
# --- stdout
4
# === bracket_balance
pairs = {")": "(", "]": "[", "}": "{"}
for _ in range(int(input())):
    stack, fine = [], True
    for ch in input().strip():
        if ch in pairs.values():
            stack.append(ch)
        elif not stack or stack.pop() != pairs[ch]:
            fine = False
            break
    print("balanced" if fine and not stack else "broken")
# --- stdin
3
([]{})
(]
((
# --- stdout
balanced
broken
broken
# --- stdin
1
[]
# --- stdout
balanced
# === longest_increasing
import bisect, sys
def main():
    it = iter(sys.stdin.read().split())
    n = int(next(it))
    tails = []
    for _ in range(n):
        x = int(next(it))
        i = bisect.bisect_left(tails, x)
        tails[i:i + 1] = [x]
    print(len(tails))
main()
# --- stdin
8
10 9 2 5 3 7 101 18
# --- stdout
4
# --- stdin
1
5
# --- stdout
1
# --- stdin
4
4 3 2 1
# --- stdout
1
# --- stdin
5
1 2 3 4 5
# --- stdout
5
# === modular_combinations
M = 10**9 + 7
N = 2000
f = [1] * (N + 1)
for i in range(1, N + 1):
    f[i] = f[i - 1] * i % M
for line in open(0).read().splitlines()[1:]:
    n, k = map(int, line.split())
    print(f[n] * pow(f[k] * f[n - k] % M, M - 2, M) % M if k <= n else 0)
# --- stdin
3
5 2
2000 1000
3 4
# --- stdout
10
72475738
0
# === kruskal
import sys
data = list(map(int, sys.stdin.buffer.read().split()))
n, m = data[:2]
edges = sorted(zip(data[4::3], data[2::3], data[3::3]))
root = list(range(n + 1))
def find(x):
    while root[x] != x:
        root[x] = root[root[x]]
        x = root[x]
    return x
total = 0
for w, a, b in edges:
    a, b = find(a), find(b)
    if a != b:
        root[a] = b
        total += w
print(total)
# --- stdin
3 3
1 2 5
2 3 1
1 3 2
# --- stdout
3
# --- stdin
2 1
1 2 7
# --- stdout
7
# === water_between_walls
h = list(map(int, input().split()))
left, right, best, water = 0, len(h) - 1, 0, 0
while left < right:
    if h[left] < h[right]:
        best, left = max(best, h[left]), left + 1
        water += max(0, best - h[left])
    else:
        best, right = max(best, h[right]), right - 1
        water += max(0, best - h[right])
print(water)
# --- stdin
3 0 2
# --- stdout
2
# --- stdin
1
# --- stdout
0
# === simulation_of_a_robot
x = y = 0
d = 1j
at = 0
for step in input():
    if step == "L":
        d *= 1j
    elif step == "R":
        d *= -1j
    else:
        at += d
print(int(at.real), int(at.imag))
# --- stdin
FFRFLB
# --- stdout
1 3
# --- stdin
F
# --- stdout
0 1
# === floats_with_digits
import math
n = int(input())
points = [tuple(map(float, input().split())) for _ in range(n)]
area = sum(a * d - b * c for (a, b), (c, d) in zip(points, points[1:] + points[:1])) / 2
print(f"{abs(area):.3f} {math.dist(points[0], points[1]):.2f}")
# --- stdin
3
0 0
4 0
0 3
# --- stdout
6.000 4.00
# === text_adventure_of_words
import sys
from collections import Counter
words = Counter(w.strip(".,").lower() for line in sys.stdin for w in line.split())
for word, n in sorted(words.items(), key=lambda p: (-p[1], p[0]))[:2]:
    print(word, n)
# --- stdin
The cat, the dog.
A cat.
# --- stdout
cat 2
the 2
# --- stdin
b a
# --- stdout
a 1
b 1
