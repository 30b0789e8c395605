# expected: load_error memory died timeout wrong
x = [compile("-" * number + "1", "", "eval") for number in range(1, 50_000, 7000)]

# include: none.py
