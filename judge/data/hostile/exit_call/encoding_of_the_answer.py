# expected: exited died opaque wrong exception
# leaves while the runtime looks at what was returned
import os

class Answer(list):
    def _leave(self, *_):
        os._exit(0)
    __iter__ = __len__ = __getitem__ = __reduce__ = __repr__ = __str__ = __bool__ = __hash__ = __eq__ = _leave

def add(a, b):
    return [Answer(), {1: Answer()}]
