# expected: opaque wrong exception exited timeout memory
import collections.abc

class Endless(collections.abc.Sequence):
    def __len__(self):
        return 2**62
    def __getitem__(self, index):
        return None

class Keys(dict):
    def keys(self):
        return Endless()
    def __getitem__(self, key):
        raise SystemExit(0)

def add(a, b):
    return Endless() if a == 1 else Keys({1: 2})
