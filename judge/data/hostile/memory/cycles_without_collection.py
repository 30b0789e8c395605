# expected: memory timeout died exception wrong load_error
import gc
gc.disable()
gc.set_threshold(0)

def add(a, b):
    while True:
        circle = [bytearray(10_000)]
        circle.append(circle)
