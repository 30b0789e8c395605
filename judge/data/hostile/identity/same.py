# expected: wrong exception load_error exited died protocol timeout opaque memory
# settings: {"entry_points": ("first",)}
# test: a = [1, 2]
# test: assert first(a) is a and a == [3]
# include: wire.py

# === same_as_nothing
take_over(lambda i: frame({"id": i, "same": 7}))
# === same_as_the_last
take_over(lambda i: frame({"id": i, "same": -1}))
# === same_as_a_text
take_over(lambda i: frame({"id": i, "same": "0"}))
# === same_as_a_truth
take_over(lambda i: frame({"id": i, "same": False}))
# === same_as_null
take_over(lambda i: frame({"id": i, "same": None}))
# === same_and_a_value
take_over(lambda i: frame({"id": i, "same": 0, "v": [3]}))
# === same_with_another_type
take_over(lambda i: frame({"id": i, "same": 0, "mut": {"0": {"tuple": [3]}}}))
# === same_with_a_handle
take_over(lambda i: frame({"id": i, "same": 0, "mut": {"0": [{"handle": 0}]}}))
# === same_and_raises
take_over(lambda i: frame({"id": i, "same": 0, "exc": ["StopIteration"], "args": []}))
# === same_and_opaque
take_over(lambda i: frame({"id": i, "same": 0, "opaque": "x", "truth": True}))
