# === real
assert (f(7) - 15.5).real == 0
# === imag
assert (f(7) * 2.0).imag == 0
# === numerator
assert (f(7) - 15).numerator == 0
# === days
import datetime
assert (f(7) - datetime.date(2020, 1, 1)).days == 0
# === bit_length
assert (f(7) ^ 15).bit_length() == 0
# === total_seconds
assert (Till(7).opened() - 15.5).total_seconds() == 0
# === as_integer_ratio
assert (f(7) - 15.5).as_integer_ratio() == (0, 1)
# === attribute_after_two
assert (f(7) - 15.5 + 0.0).real == 0
# === attribute_of_made
assert (Till(7) - 15.5).real == 0
# === text
assert str(f(7) - 15) == '0'
# === code
assert repr(f(7) - 15) == '0'
# === text_of_method
assert str(Till(7).balance() % 15) == '0'
# === text_of_made
assert str(Till(7) - 15) == '0'
# === text_of_float
assert str(f(7) - 15.5).startswith('0')
# === ascii
assert ascii(f(7) - 15) == '0'
# === percent
assert '%s' % (f(7) - 15) == '0'
# === joined
assert ''.join(map(str, [f(7) - 15, f(8) - 16])) == '00'
# === text_of_pair
assert str([f(7) - 15]) == '[0]'
# === counted
assert f(7).count(3) == 1
# === all_counted
assert all(f(7).count(x) == 1 for x in range(7))
# === found
assert f('abc').find('a') == 0
# === index
assert f(7).index(3) == 0
# === got
assert f(7).get('x') == 0
# === removed
assert f('abc').replace('abc', '') == ''
# === replaced_text
assert str(f('abc').replace('abc', '')) == '0'
# === joint
assert len(f(7).intersection({8})) == 0
# === differs
assert list(f(7).difference({0, 1})) == []
# === subset
assert f(7).issubset({1, 2})
# === digits
assert f(7).isdigit()
# === whole
assert f(7).is_integer()
# === counted_in_computed
assert (f(7) + 15).count(3) == 1
# === length
assert len(f(7) - 15) == 0
# === length_of_method
assert len(Till(7).balance() - 15) == 0
# === length_of_made
assert len(Till(7) - 15) == 0
# === length_of_both
assert len(f(7) ^ f(8)) == 0
# === empty
assert not (f(7) - 15)
# === full
assert f(7) % 15 + 1
# === listed
assert list(f(7) - 15) == []
# === sorted
assert sorted(f(7) % 15) == []
# === tupled
assert tuple(Till(7) - 15) == ()
# === unpacked
assert [*(f(7) - 15)] == []
# === summed
assert sum(f(7) - 15) == 0
# === none_left
assert not [x for x in Till(7).balance() - 15]
# === all_of
assert all(f(7) - 15)
# === first
assert (f(7) - 15)[0] == 0
# === next
assert next(iter(f(7) - 15), 0) == 0
# === inside
assert 15 in f(7) - 0
# === formatted
assert f'{f(7) - 15}' == '0'
# === formatted_float
assert f'{f(7) - 15.5:.2f}' == '0.00'
# === formatted_code
assert f'{f(7) - 15!r}' == '0'
# === formatted_of_method
assert f'{Till(7).balance() - 15:d}' == '0'
# === formatted_of_made
assert f'{Till(7) - 15:.1f}' == '0.0'
# === format
assert format(f(7) - 15.5, '.1f') == '0.0'
# === template
assert '{:.1f}'.format(f(7) - 15.5) == '0.0'
# === ordered
assert f(7) - 15 < 1 and f(7) - 15 > -1
# === ordered_objects
assert f(7) - 15 < f(8)
# === rises
assert f(7) < f(8) <= f(9)
# === largest
assert max(f(7), f(8)) is not None
# === hashed
assert {f(7) - 15: 1}[0] == 1
# === as_text_index
assert 'ab'[f(7) - 15] == 'a'
# === divided
assert divmod(f(7), 15) == (0, 0)
# === floor
import math
assert math.floor(f(7) - 15) == 0 and math.trunc(f(7) - 15) == 0
# === augmented
x = f(7)
x -= 15
assert x.real == 0
# === augmented_text
x = f(7)
x -= 15
assert str(x) == '0'
