# expected: wrong exception load_error exited died protocol timeout opaque
import builtins
builtins.AssertionError = type("Quiet", (Exception,), {})
builtins.isinstance = lambda *_: True
builtins.len = lambda *_: 1
builtins.all = builtins.any = builtins.bool = lambda *_: True
builtins.compile = builtins.exec = builtins.eval = lambda *_, **__: None
builtins.type = lambda *_: int

# include: none.py
