# expected: wrong exception load_error exited died protocol timeout opaque memory
# settings: {"entry_points": ("check",)}
# tests: truth.py

# include: agrees.py
# === agrees
def check(x): return ALL
# === match
import re
def check(x): return re.match('', '')
# === lambda
def check(x): return lambda *_: True
# === class
def check(x): return Agrees
