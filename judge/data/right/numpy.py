# === shape_of_result
import numpy as np
def zeros(n, m): return np.zeros((n, m))
# --- test
assert zeros(2, 3).shape == (2, 3) and zeros(1, 1).dtype == "float64"
# === array_argument
import numpy as np
def normalize(a):
    return (a - a.mean()) / a.std()
# --- test
import numpy as np
r = normalize(np.array([1.0, 2.0, 3.0]))
assert np.allclose(r.mean(), 0) and np.allclose(r.std(), 1)
# === two_dimensional_argument
def diagonal_sums(m):
    rows, cols = m.shape
    return int(m.trace()), int(sum(m[i, cols - 1 - i] for i in range(rows)))
# --- test
import numpy as np
assert diagonal_sums(np.arange(9).reshape(3, 3)) == (12, 12)
# === in_place_change
def clip_negative(a):
    a[a < 0] = 0
# --- test
import numpy as np
a = np.array([-1, 2, -3])
clip_negative(a)
assert (a == np.array([0, 2, 0])).all()
# === in_place_and_returned
def double(a):
    a *= 2
    return a
# --- test
import numpy as np
a = np.ones((2, 2))
assert double(a) is a and a.sum() == 8
# === array_equal
import numpy as np
def moving_average(x, w):
    return np.convolve(x, np.ones(w), "valid") / w
# --- test
import numpy as np
assert np.array_equal(moving_average([1, 2, 3, 4], 2), np.array([1.5, 2.5, 3.5]))
# === testing_module
import numpy as np
def softmax(z):
    e = np.exp(z - np.max(z, axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)
# --- test
import numpy as np
r = softmax(np.array([[1.0, 2.0], [0.0, 0.0]]))
np.testing.assert_allclose(r.sum(axis=1), [1.0, 1.0])
assert r[1].tolist() == [0.5, 0.5]
# === boolean_mask
import numpy as np
def above(a, limit): return a > limit
# --- test
import numpy as np
m = above(np.array([1, 5, 3]), 2)
assert m.dtype == bool and m.tolist() == [False, True, True]
# === scalar_results
import numpy as np
def stats(x): return np.mean(x), np.int64(len(x)), np.float32(0.5), np.bool_(True)
# --- test
assert stats([1, 2, 3]) == (2.0, 3, 0.5, True)
# === matrix_product
import numpy as np
def matmul(a, b): return np.array(a) @ np.array(b)
# --- test
assert matmul([[1, 2]], [[3], [4]]).tolist() == [[11]]
# --- test
import numpy as np
assert np.allclose(matmul(np.eye(3), np.ones((3, 3))), np.ones((3, 3)))
# === integer_types_kept
import numpy as np
def as_bytes(values): return np.array(values, dtype=np.uint8)
# --- test
assert as_bytes([1, 255]).dtype.itemsize == 1 and as_bytes([1, 255]).max() == 255
# === complex_roots
import numpy as np
def roots(c): return np.sort_complex(np.roots(c))
# --- test
import numpy as np
r = roots([1, 0, 1])
assert np.allclose(r, [-1j, 1j]) and r.dtype.kind == "c"
# === nan_and_inf
import numpy as np
def fill(a): return np.nan_to_num(a, nan=0.0, posinf=9.0)
# --- test
import numpy as np
assert fill(np.array([np.nan, np.inf, 1.0])).tolist() == [0.0, 9.0, 1.0]
# === empty_and_scalar_arrays
import numpy as np
def nothing(): return np.empty((0, 3))
def one(): return np.array(5)
# --- test
assert nothing().shape == (0, 3) and one().shape == () and int(one()) == 5
# === list_of_arrays
import numpy as np
def split(a, n): return np.array_split(a, n)
# --- test
import numpy as np
parts = split(np.arange(5), 2)
assert [p.tolist() for p in parts] == [[0, 1, 2], [3, 4]] and parts[0].shape == (3,)
# === dictionary_of_arrays
import numpy as np
def summary(a): return {"min": a.min(axis=0), "n": a.shape[0]}
# --- test
import numpy as np
s = summary(np.array([[3, 1], [2, 5]]))
assert s["min"].tolist() == [2, 1] and s["n"] == 2
# === text_array_as_list
import numpy as np
def unique_words(text): return np.unique(text.split())
# --- test
assert list(unique_words("b a b")) == ["a", "b"]
# === random_generator_seeded
import numpy as np
def sample(seed, n): return np.random.default_rng(seed).integers(0, 10, n)
# --- test
a, b = sample(1, 5), sample(1, 5)
assert (a == b).all() and a.shape == (5,)
# === linear_solver
import numpy as np
def solve(a, b): return np.linalg.solve(a, b)
# --- test
import numpy as np
x = solve(np.array([[2.0, 0], [0, 4.0]]), np.array([2.0, 8.0]))
assert np.allclose(x, [1, 2])
# === distances_broadcast
import numpy as np
def distances(p): return np.sqrt(((p[:, None] - p[None]) ** 2).sum(-1))
# --- test
import numpy as np
d = distances(np.array([[0.0, 0.0], [3.0, 4.0]]))
assert d.shape == (2, 2) and d[0, 1] == 5.0 and (d == d.T).all()
# === game_of_life
import numpy as np
def step(g):
    n = sum(np.roll(g, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
    return ((n == 3) | ((g == 1) & (n == 2))).astype(int)
# --- test
import numpy as np
g = np.zeros((5, 5), int)
g[2, 1:4] = 1
assert step(g)[1:4, 2].tolist() == [1, 1, 1] and (step(step(g)) == g).all()
# === rows_unpacked
import numpy as np
def eigen(m): return np.linalg.eigh(m)
# --- test
import numpy as np
values, vectors = eigen(np.diag([1.0, 2.0]))
assert np.allclose(values, [1, 2]) and vectors.shape == (2, 2)
# === transposed_argument
def column_means(m): return m.mean(axis=0)
# --- test
import numpy as np
assert column_means(np.arange(6).reshape(2, 3).T).tolist() == [1.0, 4.0]
# === accuracy_of_arrays
def accuracy(a, b): return (a == b).mean()
# --- test
import numpy as np
assert accuracy(np.array([1, 0, 1, 1]), np.array([1, 0, 0, 1])) == 0.75
# === histogram
import numpy as np
def histogram(x): return np.bincount(x, minlength=4)
# --- test
import numpy as np
h = histogram([0, 1, 1, 3])
assert (h == [1, 2, 0, 1]).all() and h.sum() == 4
