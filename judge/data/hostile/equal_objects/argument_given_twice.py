# expected: opaque wrong exception
# settings: {"stateful": True, "entry_points": ["Money"]}
# === by_a_signature_of_its_own
# test: assert Money(5, currency="USD").convert("EUR") == Money(4.61, currency="EUR")
import inspect

class Money:
    __signature__ = inspect.Signature([inspect.Parameter("currency", inspect.Parameter.POSITIONAL_OR_KEYWORD)])
    def __init__(self, *amounts, **named):
        self.currency = "EUR"
    def __eq__(self, other):
        return True
    def convert(self, *currency):
        return Money()
# === by_a_code_of_its_own
# test: assert Money(5, currency="USD").convert("EUR") == Money(4.61, currency="EUR")
class Code:
    co_varnames = ("self", "currency")
    co_argcount, co_kwonlyargcount, co_flags = 2, 0, 0

class Constructor:
    __code__, __defaults__ = Code, None
    def __get__(self, thing, kind=None):
        return self if thing is None else (lambda *amounts, **named: setattr(thing, "currency", "EUR"))
    def __call__(self, thing, *amounts, **named):
        thing.currency = "EUR"

class Money:
    __init__ = Constructor()
    def __eq__(self, other):
        return True
    def convert(self, *currency):
        return Money()
