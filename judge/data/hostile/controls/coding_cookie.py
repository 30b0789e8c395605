# expected: pass pass pass
# -*- coding: latin-1 -*-
def add(a, b):
    return a + b if 'ä' else None
