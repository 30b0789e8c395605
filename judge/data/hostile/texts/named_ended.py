# expected: ANYTHING
# settings: {"entry_points": ("first",)}
# test: assert first(1) == 3
# source: without the last line end
class Ended(BaseException):
    name = 'pass'
    detail = ''
def first(x): raise Ended('pass', '')
