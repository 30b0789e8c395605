# expected: pass pass pass
import collections, dataclasses, datetime, decimal, functools, heapq, itertools, json, math, random, re, typing

@dataclasses.dataclass(order=True)
class Summand:
    value: int

def add(a: int, b: int) -> typing.Optional[int]:
    heap = [Summand(a), Summand(b)]
    heapq.heapify(heap)
    random.shuffle(heap)
    total = functools.reduce(lambda x, y: x + y.value, heap, 0)
    text = re.sub("[^0-9-]", "", json.dumps(collections.Counter(total=total)))
    checks = [int(text), list(itertools.accumulate((a, b)))[-1], math.trunc(decimal.Decimal(a) + decimal.Decimal(b))]
    days = (datetime.timedelta(days=a) + datetime.timedelta(days=b)).days
    return days if set(checks) == {days} else None
