# expected: wrong exception load_error exited died protocol timeout opaque memory
# settings: {"entry_points": ("first",)}
# test: assert first(1) == [3]
# include: wire.py

# === array_without_numpy
take_over(lambda i: frame({"id": i, "v": {"array": ["<i8", [1], [3]]}}))
# === array_of_objects
take_over(lambda i: frame({"id": i, "v": {"array": ["|O", [1], [3]]}}))
# === array_of_records
take_over(lambda i: frame({"id": i, "v": {"array": ["<i8,<i8", [1], [3]]}}))
# === array_of_a_vast_kind
take_over(lambda i: frame({"id": i, "v": {"array": ["<U999999999", [1], ["x"]]}}))
# === array_of_a_vast_shape
take_over(lambda i: frame({"id": i, "v": {"array": ["<i8", [10**18], []]}}))
# === array_of_no_shape
take_over(lambda i: frame({"id": i, "v": {"array": ["<i8", None, [3]]}}))
# === array_of_too_little
take_over(lambda i: frame({"id": i, "v": {"array": ["<i8"]}}))
# === array_of_arrays
take_over(lambda i: frame({"id": i, "v": {"array": ["<i8", [1], [{"array": ["<i8", [1], [3]]}]]}}))
