DRAW = lambda rng: (sorted(integers(rng, 0, 7, 2, 7)), sorted(integers(rng, 0, 7, 2, 7)))
EDGES = [([], []), ([], [1, 1]), ([1, 2], [1, 2]), ([0, 0, 1], [0])]

"""`first` and `second` are ascending lists of integers, in which numbers may repeat. Define `merge_all(first, second)`:
the ascending list of all numbers of both lists, with every repetition."""
EXAMPLE = ([1, 2, 2], [2, 3]), [1, 2, 2, 2, 3]

from collections import Counter


def merge_all(first, second):
    a, b = Counter(first), Counter(second)
    # wrong: return sorted((a | b).elements())
    return sorted((a + b).elements())

"""`first` and `second` are ascending lists of integers, in which numbers may repeat. Define `common_with_repeats(first,
second)`: the ascending list of the numbers that are in both lists, each as often as in the list that has it less
often."""
EXAMPLE = ([1, 2, 2], [2, 2, 2, 3]), [2, 2]

from collections import Counter


def common_with_repeats(first, second):
    a, b = Counter(first), Counter(second)
    # wrong: return sorted((Counter(a.keys() & b.keys())).elements())
    return sorted((a & b).elements())

"""`first` and `second` are ascending lists of integers, in which numbers may repeat. Define `without_once_each(first,
second)`: the ascending list of what remains of `first` if every entry of `second` strikes out one equal entry of it,
where there still is one."""
EXAMPLE = ([1, 2, 2], [2, 3]), [1, 2]

from collections import Counter


def without_once_each(first, second):
    a, b = Counter(first), Counter(second)
    # wrong: return sorted((Counter(a.keys() - b.keys())).elements())
    return sorted((a - b).elements())

"""`first` and `second` are ascending lists of integers, in which numbers may repeat. Define `in_exactly_one(first,
second)`: the ascending list of the numbers that occur in exactly one of the two lists (however often), each once."""
EXAMPLE = ([1, 2, 2], [2, 3]), [1, 3]

from collections import Counter


def in_exactly_one(first, second):
    a, b = Counter(first), Counter(second)
    # wrong: return sorted(((a - b) + (b - a)).elements())
    return sorted((Counter(a.keys() ^ b.keys())).elements())
