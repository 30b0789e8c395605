# expected: wrong exception load_error exited died protocol timeout
import io, os, sys
sys.stdin = io.StringIO('{"verdict": "pass"}')
sys.stdout = sys.stderr = io.StringIO()
os.read = lambda *_: b""
os.close = os.dup2 = lambda *_, **__: 0

# include: none.py
