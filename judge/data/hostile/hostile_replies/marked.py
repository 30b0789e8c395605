# expected: protocol wrong opaque exception
# include: wire.py

# === tag_int_no_digits
mark = tag(2**70, 'int')
take_over(lambda i: frame({'id': i, 'v': {mark: 'xyz'}}))
# === tag_int_true
mark = tag(2**70, 'int')
take_over(lambda i: frame({'id': i, 'v': {mark: True}}))
# === tag_int_of_4_mb
mark = tag(2**70, 'int')
take_over(lambda i: frame({'id': i, 'v': {mark: 'f' * 4_000_000}}))
# === tag_int_with_underscores
mark = tag(2**70, 'int')
take_over(lambda i: frame({'id': i, 'v': {mark: '-0x_f'}}))
# === tag_float_no_number
mark = tag(float('nan'), 'float')
take_over(lambda i: frame({'id': i, 'v': {mark: 'pass'}}))
# === tag_float_list
mark = tag(float('nan'), 'float')
take_over(lambda i: frame({'id': i, 'v': {mark: [1]}}))
# === tag_tuple_text
mark = tag((1,), 'tuple')
take_over(lambda i: frame({'id': i, 'v': {mark: 'pass'}}))
# === tag_tuple_null
mark = tag((1,), 'tuple')
take_over(lambda i: frame({'id': i, 'v': {mark: None}}))
# === tag_tuple_nested_300
mark = tag((1,), 'tuple')
take_over(lambda i: frame({'id': i, 'v': {mark: json.loads('[' * 300 + ']' * 300)}}))
# === tag_set_unhashable
mark = tag({1}, 'set')
take_over(lambda i: frame({'id': i, 'v': {mark: [[1], [2]]}}))
# === tag_set_number
mark = tag({1}, 'set')
take_over(lambda i: frame({'id': i, 'v': {mark: 7}}))
# === tag_set_twice_the_same
mark = tag({1}, 'set')
take_over(lambda i: frame({'id': i, 'v': {mark: [1, True, 1.0, 1]}}))
# === tag_frozenset_object
mark = tag(frozenset({1}), 'frozenset')
take_over(lambda i: frame({'id': i, 'v': {mark: {}}}))
# === tag_dict_unhashable_key
mark = tag({1: 2}, 'dict')
take_over(lambda i: frame({'id': i, 'v': {mark: [[[1], 2]]}}))
# === tag_dict_short_pair
mark = tag({1: 2}, 'dict')
take_over(lambda i: frame({'id': i, 'v': {mark: [[1]]}}))
# === tag_dict_flat
mark = tag({1: 2}, 'dict')
take_over(lambda i: frame({'id': i, 'v': {mark: ['ab', 'cd']}}))
# === tag_dict_nan_keys
mark = tag({1: 2}, 'dict')
take_over(lambda i: frame({'id': i, 'v': {mark: [[{tag(float('nan'), 'float'): 'nan'}, 1]] * 3}}))
# === tag_bytes_no_digits
mark = tag(b'x', 'bytes')
take_over(lambda i: frame({'id': i, 'v': {mark: 'zz'}}))
# === tag_bytes_numbers
mark = tag(b'x', 'bytes')
take_over(lambda i: frame({'id': i, 'v': {mark: [256, -1]}}))
# === tag_bytes_length
mark = tag(b'x', 'bytes')
take_over(lambda i: frame({'id': i, 'v': {mark: 1_000_000_000}}))
# === tag_complex_short
mark = tag(1j, 'complex')
take_over(lambda i: frame({'id': i, 'v': {mark: [1]}}))
# === tag_complex_text
mark = tag(1j, 'complex')
take_over(lambda i: frame({'id': i, 'v': {mark: ['a', 'b']}}))
# === tag_range_step_zero
mark = tag(range(3), 'range')
take_over(lambda i: frame({'id': i, 'v': {mark: [0, 9, 0]}}))
# === tag_range_text
mark = tag(range(3), 'range')
take_over(lambda i: frame({'id': i, 'v': {mark: '999'}}))
# === tag_range_of_a_quintillion
mark = tag(range(3), 'range')
take_over(lambda i: frame({'id': i, 'v': {mark: [0, 10**15, 1]}}))
# === tag_deque_number
mark = tag(__import__('collections').deque([1]), 'deque')
take_over(lambda i: frame({'id': i, 'v': {mark: 1_000_000_000}}))
# === tag_decimal_signalling
mark = tag(__import__('decimal').Decimal(1), 'decimal')
take_over(lambda i: frame({'id': i, 'v': {mark: 'sNaN'}}))
# === tag_decimal_no_number
mark = tag(__import__('decimal').Decimal(1), 'decimal')
take_over(lambda i: frame({'id': i, 'v': {mark: 'pass'}}))
# === tag_decimal_exponent
mark = tag(__import__('decimal').Decimal(1), 'decimal')
take_over(lambda i: frame({'id': i, 'v': {mark: '1e999999999999999999'}}))
# === tag_fraction_over_zero
mark = tag(__import__('fractions').Fraction(1, 3), 'fraction')
take_over(lambda i: frame({'id': i, 'v': {mark: [1, 0]}}))
# === tag_fraction_text
mark = tag(__import__('fractions').Fraction(1, 3), 'fraction')
take_over(lambda i: frame({'id': i, 'v': {mark: '1/0'}}))
# === tag_set_of_colliding_integers
# expected: protocol wrong opaque exception timeout memory
mark = tag({1}, 'set')
take_over(lambda i: frame({'id': i, 'v': {mark: (lambda big: [{big: hex(k * (2**61 - 1))} for k in range(1, 60_000)])(tag(2**70, 'int'))}}))
