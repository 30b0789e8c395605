# expected: pass pass pass
def add(a, b=0, *rest, start=0, **options):
    return sum(rest, start + a + b)
