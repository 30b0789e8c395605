# expected: timeout died exception output_limit
def add(a, b):
    while True:
        print("x" * 100_000)
