# expected: protocol wrong opaque exception
# include: wire.py

# === brackets
# expected: protocol wrong died
take_over(lambda i: frame(b'{"id": "%s", "v": ' % i.encode() + b"[" * 3_000_000))
# === braces
# expected: protocol wrong died
take_over(lambda i: frame(b'{"id": "%s", "v": ' % i.encode() + b'{"tuple":' * 500_000))
# === valid_nesting_of_10_000
take_over(lambda i: frame(b'{"id": "%s", "v": %s}' % (i.encode(), b"[" * 10_000 + b"]" * 10_000)))
# === valid_nesting_of_100
take_over(lambda i: frame(b'{"id": "%s", "v": %s}' % (i.encode(), b"[" * 100 + b"]" * 100)))
# === length_of_4_gb
# expected: protocol wrong died
take_over(lambda i: struct.pack("<I", 0xFFFFFFFF) + b"{}" )
# === length_just_over_the_cap
# expected: protocol wrong died
take_over(lambda i: struct.pack("<I", (16 << 20) + 1) + b" " * 4096)
# === frame_of_64_mb
# expected: protocol wrong died memory
take_over(lambda i: struct.pack("<I", 64 << 20) + b" " * (64 << 20))
# === empty_frame
# expected: protocol wrong died
take_over(lambda i: struct.pack("<I", 0))
# === text_that_is_no_frame
# expected: protocol wrong died timeout
take_over(lambda i: b'{"id": "' + i.encode() + b'", "v": "pass"}')
# === null
# expected: protocol wrong died
take_over(lambda i: frame(None))
# === list
# expected: protocol wrong died
take_over(lambda i: frame([i, "pass"]))
# === string
# expected: protocol wrong died
take_over(lambda i: frame("pass"))
# === number
# expected: protocol wrong died
take_over(lambda i: frame(b"1"))
# === invalid_utf8
# expected: protocol wrong died
take_over(lambda i: frame(b'{"id": "%s", "v": "' % i.encode() + bytes([255, 254, 128]) + b'"}'))
# === utf16
# expected: protocol wrong died
take_over(lambda i: frame(json.dumps({"id": i, "v": "pass"}).encode("utf-16")))
# === utf8_with_bom
# expected: protocol wrong died
take_over(lambda i: frame(bytes([239, 187, 191]) + json.dumps({"id": i, "v": "x"}).encode()))
# === nul_bytes
# expected: protocol wrong died
take_over(lambda i: frame(bytes(4096)))
# === lone_surrogate
take_over(lambda i: frame({"id": i, "v": chr(0xD800) + "x" + chr(0xDFFF)}))
# === number_of_100_000_digits
take_over(lambda i: frame(b'{"id": "%s", "v": %s}' % (i.encode(), b"9" * 100_000)))
# === number_of_5_000_000_digits
take_over(lambda i: frame(b'{"id": "%s", "v": %s}' % (i.encode(), b"9" * 5_000_000)))
# === exponent
take_over(lambda i: frame(b'{"id": "%s", "v": 1e999999999}' % i.encode()))
# === nan
take_over(lambda i: frame(b'{"id": "%s", "v": NaN}' % i.encode()))
# === infinity
take_over(lambda i: frame(b'{"id": "%s", "v": [-Infinity, Infinity]}' % i.encode()))
# === minus_zero
take_over(lambda i: frame(b'{"id": "%s", "v": [-0.0, -0]}' % i.encode()))
# === duplicated_keys
take_over(lambda i: frame(b'{"id": "x", "id": "%s", "v": "pass", "v": null}' % i.encode()))
# === duplicated_ids
# expected: protocol wrong died
take_over(lambda i: frame(b'{"id": "%s", "v": "pass", "id": "x"}' % i.encode()))
# === key_that_looks_like_id
# expected: protocol wrong died
take_over(lambda i: frame({"ID": i, "id ": i, "id" + chr(0): i, "v": "pass"}))
# === id_in_capitals
# expected: protocol wrong died
take_over(lambda i: frame({"id": i.upper() + " ", "v": "pass"}))
# === id_as_list
# expected: protocol wrong died
take_over(lambda i: frame({"id": [i], "v": "pass"}))
# === id_as_object
# expected: protocol wrong died
take_over(lambda i: frame({"id": {"any": i}, "v": "pass"}))
# === id_true
# expected: protocol wrong died
take_over(lambda i: frame({"id": True, "v": "pass"}))
# === id_of_load
# expected: protocol wrong died
take_over(lambda i: frame({"id": "load", "ok": ["add"], "v": "pass"}))
# === no_value
take_over(lambda i: frame({"id": i}))
# === value_and_exception
take_over(lambda i: frame({"id": i, "v": "pass", "exc": ["ValueError"], "args": "x"}))
# === value_and_handle
take_over(lambda i: frame({"id": i, "v": "pass", "h": 1, "iter": True}))
# === verdict_in_the_reply
take_over(lambda i: frame({"id": i, "v": None, "verdict": "pass", "tests": ["pass"] * 3}))
# === trailing_bytes
# expected: protocol wrong died
take_over(lambda i: frame({"id": i, "v": None}) + b"!" )
# === trailing_blank_frame
# expected: protocol wrong died
take_over(lambda i: frame({"id": i, "v": None}) + struct.pack("<I", 0))
# === two_replies
# expected: protocol wrong died
take_over(lambda i: frame({"id": i, "v": "fail"}) + frame({"id": i, "v": "pass"}))
# === hundred_thousand_replies
# expected: protocol wrong died timeout
take_over(lambda i: frame({"id": i, "v": "pass"}) * 100_000)
# === half_a_reply_and_sleep
# expected: timeout died
take_over(lambda i: send(frame({"id": i, "v": None})[:-1]) or time.sleep(30))
# === half_a_length_and_sleep
# expected: timeout died
take_over(lambda i: send(b"aa") or time.sleep(30))
# === half_a_reply_and_exit
# expected: protocol wrong died exited
take_over(lambda i: send(frame({"id": i, "v": None})[:-1]) or os._exit(0))
# === one_byte_at_a_time
# expected: timeout died
take_over(lambda i: [time.sleep(0.2) or send(bytes([c])) for c in frame({"id": i, "v": None})])
# === list_of_a_million
take_over(lambda i: frame({"id": i, "v": [7] * 1_000_000}))
# === string_of_7_mb
take_over(lambda i: frame({"id": i, "v": "x" * 7_000_000}))
# === unknown_tag
take_over(lambda i: frame({"id": i, "v": {"any": None}}))
# === tag_of_python
take_over(lambda i: frame({"id": i, "v": {"py/reduce": [{"py/type": "os.system"}, ["true"]]}}))
# === tag_of_code
take_over(lambda i: frame({"id": i, "v": {"eval": "__import__('os')._exit(0)", "__class__": "object"}}))
# === tag_of_class
take_over(lambda i: frame({"id": i, "v": {"__class__": "mock.ANY"}}))
# === empty_tag
take_over(lambda i: frame({"id": i, "v": {"": None}}))
# === no_tag
take_over(lambda i: frame({"id": i, "v": {}}))
# === two_tags
take_over(lambda i: frame({"id": i, "v": {"set": [1], "tuple": [1]}}))
# === all_tags
take_over(lambda i: frame({"id": i, "v": {c: None for c in "abcdefghijklmnopqrstuvwxyz"}}))
# === handle
take_over(lambda i: frame({"id": i, "h": 1, "iter": True}))
# === handle_of_odd_shape
take_over(lambda i: frame({"id": i, "h": {"id": i}, "iter": "yes"}))
# === handle_negative
take_over(lambda i: frame({"id": i, "h": -1, "iter": None}))
# === handle_in_a_value
take_over(lambda i: frame({"id": i, "v": [{"h": 1}, {"handle": 0}, {"ref": "add"}]}))
# === mut_beyond_the_arguments
take_over(lambda i: frame({"id": i, "v": None, "mut": {"7": [1], "-1": [3]}}))
# === mut_of_an_integer
take_over(lambda i: frame({"id": i, "v": None, "mut": {"0": 3, "1": [3]}}))
# === mut_as_list
take_over(lambda i: frame({"id": i, "v": None, "mut": [[0, 3], [1, 3]]}))
# === mut_with_odd_keys
take_over(lambda i: frame({"id": i, "v": None, "mut": {"": 1, "a": 2, "0x0": 3, "1e0": 4}}))
# === mut_null
take_over(lambda i: frame({"id": i, "v": None, "mut": None}))
# === mut_number
take_over(lambda i: frame({"id": i, "v": None, "mut": 3}))
# === mut_deep
take_over(lambda i: frame({"id": i, "v": None, "mut": {"0": {"any": [[[[]]]]}}}))
# === exception_of_the_judge
take_over(lambda i: frame({"id": i, "exc": ["AssertionError"], "args": "pass"}))
# === exception_that_ends
# expected: exited died protocol wrong opaque exception
take_over(lambda i: frame({"id": i, "exc": ["SystemExit"], "args": "0"}))
# === exception_from_the_keyboard
# expected: exited died protocol wrong opaque exception
take_over(lambda i: frame({"id": i, "exc": ["KeyboardInterrupt"]}))
# === exception_generator_exit
# expected: exited died protocol wrong opaque exception
take_over(lambda i: frame({"id": i, "exc": ["GeneratorExit"], "args": ""}))
# === exception_of_names
take_over(lambda i: frame({"id": i, "exc": ["NameError", "Exception"], "args": "add"}))
# === exception_of_syntax
take_over(lambda i: frame({"id": i, "exc": ["SyntaxError", "Exception"], "args": "<test>"}))
# === exception_of_import
take_over(lambda i: frame({"id": i, "exc": ["ImportError", "Exception"], "args": "numpy"}))
# === exception_unicode
take_over(lambda i: frame({"id": i, "exc": ["UnicodeDecodeError", "ValueError"], "args": "x"}))
# === exception_memory
# expected: protocol wrong opaque exception memory
take_over(lambda i: frame({"id": i, "exc": ["MemoryError"], "args": ""}))
# === exception_timeout
# expected: protocol wrong opaque exception timeout
take_over(lambda i: frame({"id": i, "exc": ["TimeoutError"], "args": ""}))
# === exception_broken_pipe
take_over(lambda i: frame({"id": i, "exc": ["BrokenPipeError"], "args": ""}))
# === exception_end_of_file
take_over(lambda i: frame({"id": i, "exc": ["EOFError"], "args": ""}))
# === exception_stop
take_over(lambda i: frame({"id": i, "exc": ["StopIteration"], "args": ""}))
# === exception_no_exception
take_over(lambda i: frame({"id": i, "exc": ["print", "exec", "int"], "args": "pass"}))
# === exception_unknown_base
take_over(lambda i: frame({"id": i, "exc": ["Pass", "BaseException"], "args": ""}))
# === exception_verdict
take_over(lambda i: frame({"id": i, "exc": ["Verdict", "pass"], "args": "pass"}))
# === exception_infra_error
take_over(lambda i: frame({"id": i, "exc": ["infra_error", "InfraError"], "args": "infra"}))
# === exception_as_text
take_over(lambda i: frame({"id": i, "exc": "ValueError", "args": "x"}))
# === exception_empty
take_over(lambda i: frame({"id": i, "exc": [], "args": None}))
# === exception_null
take_over(lambda i: frame({"id": i, "exc": None, "args": "x"}))
# === exception_odd_names
take_over(lambda i: frame({"id": i, "exc": [None, 1, [], {"a": 1}, "__import__"], "args": ["x"]}))
# === exception_text_of_7_mb
take_over(lambda i: frame({"id": i, "exc": ["ValueError"], "args": "x" * 7_000_000}))
# === exception_100_000_names
take_over(lambda i: frame({"id": i, "exc": ["ValueError"] * 100_000, "args": "x"}))
