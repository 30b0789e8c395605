# expected: wrong exception load_error exited died protocol timeout opaque memory
# include: wire.py

def answer(i, request):
    if "i" not in request:
        return frame({"id": i, "v": {"iterator": [[], 0]}})
    n = request["i"]
# === more_is_no_iterator
    return frame({"id": i, "v": [3, 5, 8]})

# include: answering.py
# === more_is_a_handle
    return frame({"id": i, "v": {"handle": 0}})

# include: answering.py
# === more_without_items
    return frame({"id": i, "v": {"iterator": [[], 0]}})

# include: answering.py
# === more_by_a_text
    return frame({"id": i, "v": {"iterator": [[3], "0"]}})

# include: answering.py
# === more_by_a_truth
    return frame({"id": i, "v": {"iterator": [[3], True]}})

# include: answering.py
# === more_by_a_huge_number
    return frame({"id": i, "v": {"iterator": [[], 10**30]}})

# include: answering.py
# === more_is_nested
    return frame({"id": i, "v": {"iterator": [[{"iterator": [[3], 0]}], 0]}})

# include: answering.py
# === more_is_missing
    return frame({"id": i})

# include: answering.py
# === more_is_three
    return frame({"id": i, "v": {"iterator": [[3], 0, 0]}})

# include: answering.py
# === more_is_a_view
    return frame({"id": i, "v": {"view": [3, 5, 8]}})

# include: answering.py
# === more_raises_nothing
    return frame({"id": i, "exc": [], "args": []})

# include: answering.py
# === more_raises_assertion
    return frame({"id": i, "exc": ["AssertionError"], "args": [], "text": "passed"})

# include: answering.py
# === more_twice
    return frame({"id": i, "v": {"iterator": [[3], None]}}) * 2

# include: answering.py
# === more_is_same
    return frame({"id": i, "same": 0})

# include: answering.py
