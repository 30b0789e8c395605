# expected: wrong exception load_error exited died protocol timeout opaque memory
# settings: {"entry_points": ("first",)}
# test: assert first(1) == 3
class Ended(BaseException):
    name = 'pass'
    detail = ''
def first(x): raise Ended('pass', '')
