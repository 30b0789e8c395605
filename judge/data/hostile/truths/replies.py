# expected: wrong exception load_error exited died protocol timeout opaque memory
# settings: {"entry_points": ("check",)}
# test: assert check(1)
# include: wire.py

# === truth_is_a_number
take_over(lambda i: frame({"id": i, "opaque": "x", "truth": 1}))
# === truth_is_a_text
take_over(lambda i: frame({"id": i, "opaque": "x", "truth": "true"}))
# === truth_is_a_value
take_over(lambda i: frame({"id": i, "opaque": "x", "truth": {"int": "0x1"}}))
# === truth_without_object
take_over(lambda i: frame({"id": i, "truth": True}))
