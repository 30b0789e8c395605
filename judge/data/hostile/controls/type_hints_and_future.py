# expected: pass pass pass
from __future__ import annotations

def add(a: int, b: int | None = None) -> Undefined[int]:
    total: int = a + (b or 0)
    return total
