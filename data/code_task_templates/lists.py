"""Tasks about lists: order, windows, pairs, intervals, matrices and records."""

from .common import Family, integers, lines, matrix, variant

FAMILIES = [
    Family(
        "rotate",
        "Define `$f(items, count)`: a new list with the items moved `count` places to the $side, where those that "
        "fall off "
        "come in again at the other end. `count` may be negative (then they move to the other side) or greater "
        "than the "
        "length. The empty list gives `[]`.",
        """
def $f(items, count):
    if not items:
        return []
    start = $sign % len(items)
    return items[start:] + items[:start]
""",
        {"$sign % len(items)": "$sign"},
        lambda rng: (integers(rng, 0, 9, 2, 7), rng.randint(-12, 12)),
        [
            variant(([1, 2, 3, 4], 1), [2, 3, 4, 1], f="rotate_left", side="left", sign="count"),
            variant(([1, 2, 3, 4], 1), [4, 1, 2, 3], f="rotate_right", side="right", sign="-count"),
        ],
        edges=(([], 3), ([1], 5), ([1, 2, 3], 0), ([1, 2, 3], -1), ([1, 2, 3], 7)),
    ),
    Family(
        "running",
        "Define `$f(numbers)`: $what; the empty list gives `[]`.",
        """
def $f(numbers):
    return [$item for i in range($length)]
""",
        {"$item": "$bad"},
        lambda rng: (integers(rng, -9, 15, 3, 8),),
        [
            variant(
                ([3, -1, 4],),
                [3, 2, 6],
                f="running_sums",
                item="sum(numbers[: i + 1])",
                bad="sum(numbers[:i])",
                length="len(numbers)",
                what="a list of the same length in which each number is replaced by the sum of all "
                "numbers up to and including it",
            ),
            variant(
                ([3, -1, 4],),
                [3, 3, 4],
                f="running_maxima",
                item="max(numbers[: i + 1])",
                length="len(numbers)",
                bad="max(numbers[max(0, i - 1) : i + 1])",
                what="a list of the same length in which each number is replaced by the greatest one up to and "
                "including "
                "it",
            ),
            variant(
                ([3, -1, 4],),
                [-4, 5],
                f="differences",
                item="numbers[i + 1] - numbers[i]",
                length="len(numbers) - 1",
                bad="abs(numbers[i + 1] - numbers[i])",
                what="the list of each number but the first minus the one before it (one entry fewer than `numbers`)",
            ),
            variant(
                ([3, -1, 4],),
                [3, 7, 2],
                f="sums_of_others",
                item="sum(numbers) - numbers[i]",
                length="len(numbers)",
                bad="sum(number for number in numbers if number != numbers[i])",
                what="a list of the same length in which each number is replaced by the sum of the numbers at all "
                "other "
                "positions",
                edges=(([2, 2],), ([3, 3, 1],)),
            ),
        ],
        edges=(([],), ([5],), ([1, 2, 3, 4],), ([-2, -3],)),
    ),
    Family(
        "order_by",
        "Define `$f(numbers)`: a new list of the integers sorted $rule.",
        """
def $f(numbers):
    return sorted(numbers, key=lambda number: $key)
""",
        {"$key": "$bad"},
        lambda rng: (integers(rng, -12, 12, 4, 8),),
        [
            variant(
                ([-2, 1, 2],),
                [1, -2, 2],
                f="sort_by_distance_from_zero",
                key="(abs(number), number)",
                bad="abs(number)",
                rule="by absolute value, smallest first; of a number and its negative the negative one comes first",
            ),
            variant(
                ([2, 1, 3, 1, 2, 2],),
                [2, 2, 2, 1, 1, 3],
                f="sort_by_frequency",
                key="(-numbers.count(number), number)",
                bad="-numbers.count(number)",
                rule="by how often they occur in `numbers`, most frequent first, ascending among equally frequent ones",
                edges=(([3, 1, 2],),),
                draw=lambda rng: (integers(rng, 1, 5, 5, 10),),
            ),
            variant(
                ([31, 12, 2, 30],),
                [30, 31, 2, 12],
                f="sort_by_last_digit",
                key="(number % 10, number)",
                bad="number % 10",
                rule="by their last decimal digit, ascending, and ascending among those with the same "
                "last digit; all of them are non-negative",
                draw=lambda rng: (integers(rng, 0, 60, 5, 9),),
                edges=(([12, 2],),),
            ),
            variant(
                ([3, 4, 1, 2],),
                [4, 2, 3, 1],
                f="evens_first",
                key="number % 2",
                bad="(number % 2, number)",
                rule="so that all even ones come before all odd ones, where both the even and the odd ones keep their "
                "order in `numbers`",
            ),
        ],
        edges=(([],), ([5],)),
    ),
    Family(
        "merge_lists",
        "`first` and `second` are ascending lists of integers, in which numbers may repeat. Define `$f(first, "
        "second)`: the "
        "ascending list $what.",
        """
from collections import Counter


def $f(first, second):
    a, b = Counter(first), Counter(second)
    return sorted(($result).elements())
""",
        {"$result": "$bad"},
        lambda rng: (sorted(integers(rng, 0, 7, 2, 7)), sorted(integers(rng, 0, 7, 2, 7))),
        [
            variant(
                ([1, 2, 2], [2, 3]),
                [1, 2, 2, 2, 3],
                f="merge_all",
                result="a + b",
                bad="a | b",
                what="of all numbers of both lists, with every repetition",
            ),
            variant(
                ([1, 2, 2], [2, 2, 2, 3]),
                [2, 2],
                f="common_with_repeats",
                result="a & b",
                bad="Counter(a.keys() & b.keys())",
                what="of the numbers that are in both lists, each as often as in the list that has it less often",
            ),
            variant(
                ([1, 2, 2], [2, 3]),
                [1, 2],
                f="without_once_each",
                result="a - b",
                bad="Counter(a.keys() - b.keys())",
                what="of what remains of `first` if every entry of `second` strikes out one equal entry of it, where "
                "there still is one",
            ),
            variant(
                ([1, 2, 2], [2, 3]),
                [1, 3],
                f="in_exactly_one",
                result="Counter(a.keys() ^ b.keys())",
                bad="(a - b) + (b - a)",
                what="of the numbers that occur in exactly one of the two lists (however often), each once",
            ),
        ],
        edges=(([], []), ([], [1, 1]), ([1, 2], [1, 2]), ([0, 0, 1], [0])),
    ),
    Family(
        "chunks",
        "`items` is cut from the left into pieces of `size` neighbouring items (`size` is at least 1). $rest "
        "Define `$f(items, size)`: $what, `[]` if there is none.",
        """
def $f(items, size):
    pieces = [items[i : i + size] for i in range(0, $end, size)]
    return $result
""",
        {"$end": "$bad"},
        lambda rng: (integers(rng, 0, 9, 4, 9), rng.randint(1, 5)),
        [
            variant(
                ([1, 2, 3], 2),
                [[1, 2], [3]],
                f="cut_into_pieces",
                rest="The last piece may be shorter.",
                what="the list of the pieces",
                result="pieces",
                end="len(items)",
                bad="len(items) - size + 1",
            ),
            variant(
                ([1, 2, 3], 2),
                [[1, 2]],
                f="cut_full_pieces",
                rest="Items left over at the end are dropped.",
                what="the list of the pieces",
                result="pieces",
                end="len(items) - size + 1",
                bad="len(items)",
            ),
            variant(
                ([1, 2, 3], 2),
                [3, 3],
                f="piece_sums",
                rest="The last piece may be shorter.",
                what="the list of the sums of the pieces",
                result="[sum(piece) for piece in pieces]",
                end="len(items)",
                bad="len(items) - size + 1",
            ),
            variant(
                ([1, 2, 3], 2),
                [2, 1, 3],
                f="reverse_pieces",
                rest="The last piece may be shorter.",
                what="one list of all items with the order within each piece reversed and the pieces in place",
                result="[item for piece in pieces for item in piece[::-1]]",
                end="len(items)",
                bad="len(items) - size + 1",
            ),
        ],
        edges=(([], 2), ([1, 2], 5), ([1, 2, 3, 4], 2), ([7], 1)),
    ),
    Family(
        "ranked",
        "Define `$f(numbers)`: $what. If there is no such number, the result is `None`.",
        """
def $f(numbers):
    ordered = sorted($source)
    return $result
""",
        {"$source": "$bad"},
        lambda rng: (integers(rng, 0, 12, 1, 7),),
        [
            variant(
                ([5, 5, 3],),
                3,
                f="second_largest_value",
                source="set(numbers)",
                bad="numbers",
                result="ordered[-2] if len(ordered) > 1 else None",
                what="the greatest number that is less than the maximum of `numbers`",
            ),
            variant(
                ([3, 1, 1, 2],),
                3,
                f="third_smallest_value",
                source="set(numbers)",
                bad="numbers",
                result="ordered[2] if len(ordered) > 2 else None",
                what="the third smallest of the different values in `numbers`",
            ),
            variant(
                ([4, 1, 3, 2],),
                2,
                f="lower_median",
                source="numbers",
                bad="set(numbers)",
                edges=(([1, 1, 1, 2, 3],),),
                result="ordered[(len(ordered) - 1) // 2] if ordered else None",
                what="the median, that is the middle one of the sorted numbers (repetitions included), or of the two "
                "middle ones the smaller",
            ),
            variant(
                ([2, 3, 3, 1],),
                1,
                f="smallest_unique",
                source="n for n in numbers if numbers.count(n) == 1",
                bad="set(numbers)",
                result="ordered[0] if ordered else None",
                what="the smallest number that occurs exactly once in `numbers`",
                edges=(([1, 1, 2],),),
            ),
        ],
        edges=(([],), ([4],), ([2, 2],), ([1, 2],), ([3, 3, 5, 5],)),
    ),
    Family(
        "pairs_with_sum",
        "Define `$f(numbers, total)`: $what.",
        """
def $f(numbers, total):
    found = []
    for i, a in enumerate(numbers):
        for j in range(i + 1, len(numbers)):
            if a + numbers[j] == total:
                found.append($entry)
    return $result
""",
        {"range(i + 1, len(numbers))": "range($start, len(numbers))"},
        lambda rng: (integers(rng, -3, 8, 4, 9), rng.randint(0, 9)),
        [
            variant(
                ([1, 3, 1, 3], 4),
                4,
                f="count_pairs_with_sum",
                entry="(i, j)",
                result="len(found)",
                start="i",
                what="the number of pairs of positions i < j whose numbers add up to `total`",
                edges=(([2, 5], 4),),
            ),
            variant(
                ([1, 3, 1, 3], 4),
                (0, 1),
                f="first_pair_with_sum",
                entry="(i, j)",
                start="i",
                result="min(found, default=None)",
                edges=(([2, 5, 2], 4), ([2, 1], 4)),
                what="the tuple (i, j) of positions i < j, counted from 0, whose numbers add up to `total`; the "
                "smallest i "
                "that has a partner, then the smallest j; `None` if there is no such pair",
            ),
            variant(
                ([3, 1, 1, 2, 2], 4),
                [(1, 3), (2, 2)],
                f="value_pairs_with_sum",
                entry="(min(a, numbers[j]), max(a, numbers[j]))",
                result="sorted(set(found))",
                start="i",
                what="the ascending list of the different tuples (a, b) with a <= b and a + b == `total` that two "
                "entries "
                "at different positions of `numbers` form; `[]` if there are none",
                edges=(([2, 5], 4), ([2, 2, 2], 4)),
            ),
        ],
        edges=(([], 0), ([0], 0), ([0, 0], 0)),
    ),
    Family(
        "monotone_stretch",
        "Define `$f(numbers)`: $what of neighbouring numbers in which each number after the first is $relation the one "
        "before it. $empty",
        """
def $f(numbers):
    best = length = start = 0
    for i, number in enumerate(numbers):
        length = length + 1 if i > 0 and number $compare numbers[i - 1] else 1
        if length > best:
            best, start = length, i - length + 1
    return $result
""",
        {"number $compare": "number $bad"},
        lambda rng: (integers(rng, 0, 6, 5, 11),),
        [
            variant(
                ([1, 2, 2, 3],),
                2,
                f="longest_rise",
                what="the length of the longest stretch",
                compare=">",
                bad=">=",
                relation="greater than",
                empty="It is 0 for the empty list.",
                result="best",
            ),
            variant(
                ([1, 2, 2, 3],),
                4,
                f="longest_non_fall",
                what="the length of the longest stretch",
                compare=">=",
                bad=">",
                relation="greater than or equal to",
                empty="It is 0 for the empty list.",
                result="best",
            ),
            variant(
                ([4, 3, 3, 5, 2],),
                [4, 3],
                f="first_longest_fall",
                relation="less than",
                compare="<",
                bad="<=",
                result="numbers[start : start + best]",
                what="the longest stretch (a list; the leftmost one if several tie)",
                empty="It is `[]` for the empty list.",
            ),
            variant(
                ([4, 3, 3, 5],),
                0,
                f="start_of_longest_non_rise",
                relation="less than or equal to",
                compare="<=",
                bad="<",
                result="start if numbers else None",
                empty="It is `None` for the empty list.",
                what="the position (from 0) at which the longest stretch starts (the leftmost one if several tie)"
                " that consists",
            ),
        ],
        edges=(([],), ([7],), ([2, 2, 2],), ([3, 2, 1],), ([1, 2, 3],)),
    ),
    Family(
        "nested",
        "`items` is a list whose entries are integers or again such lists, to any depth. Define `$f(items)`: $what.",
        """
def $f(items):
    if not isinstance(items, list):
        return $leaf
    return $combine
""",
        {"$combine": "$bad"},
        lambda rng: (
            (lambda make: make(make, 3))(
                lambda make, depth: [
                    rng.randint(0, 9) if depth == 0 or rng.random() < 0.6 else make(make, depth - 1)
                    for _ in range(rng.randint(0, 4))
                ]
            ),
        ),
        [
            variant(
                ([1, [2, [3]], []],),
                [1, 2, 3],
                f="flatten",
                what="the list of all the integers, in order",
                leaf="[items]",
                combine="[number for item in items for number in flatten(item)]",
                bad="[number for item in items for number in (item if isinstance(item, list) else [item])]",
            ),
            variant(
                ([1, [2, [3]], []],),
                3,
                f="nesting_level",
                what="the depth of its nesting: 1 for a list without lists in "
                "it, otherwise 1 more than the greatest depth among the lists in it",
                leaf="0",
                combine="1 + max(map(nesting_level, items), default=0)",
                bad="1 + sum(map(nesting_level, items))",
            ),
            variant(
                ([1, [2, [3]], []],),
                6,
                f="nested_sum",
                what="the sum of all the integers, 0 if there are none",
                leaf="items",
                combine="sum(map(nested_sum, items))",
                bad="sum(sum(item) if isinstance(item, list) else item for item in items)",
            ),
            variant(
                ([1, [2, [3]], []],),
                [[], [[3], 2], 1],
                f="deep_reverse",
                leaf="items",
                what="a copy in which the order of the entries is reversed in every list, at every depth",
                combine="[deep_reverse(item) for item in items[::-1]]",
                bad="items[::-1]",
            ),
        ],
        edges=(([],), ([[]],), ([1, 2],), ([[1], [[2]]],)),
    ),
    Family(
        "turn_matrix",
        "`matrix` is a non-empty list of rows, each a non-empty list of the same length. Define `$f(matrix)`: the "
        "matrix, as "
        "a new list of lists, $what.",
        """
def $f(matrix):
    return [list(row) for row in $result]
""",
        {"$result": "$bad"},
        lambda rng: (matrix(rng, rng.randint(1, 3), rng.randint(1, 4)),),
        [
            variant(
                ([[1, 2], [3, 4]],),
                [[1, 3], [2, 4]],
                f="transpose",
                result="zip(*matrix)",
                bad="zip(*matrix[::-1])",
                what="transposed: rows become columns",
            ),
            variant(
                ([[1, 2], [3, 4]],),
                [[3, 1], [4, 2]],
                f="turn_clockwise",
                result="zip(*matrix[::-1])",
                bad="list(zip(*matrix))[::-1]",
                what="turned clockwise by 90 degrees",
            ),
            variant(
                ([[1, 2], [3, 4]],),
                [[2, 4], [1, 3]],
                f="turn_counterclockwise",
                result="list(zip(*matrix))[::-1]",
                bad="zip(*matrix[::-1])",
                what="turned counterclockwise by 90 degrees",
            ),
            variant(
                ([[1, 2], [3, 4]],),
                [[4, 3], [2, 1]],
                f="turn_half",
                result="[row[::-1] for row in matrix[::-1]]",
                bad="matrix[::-1]",
                what="turned by 180 degrees",
            ),
        ],
        edges=(([[1]],), ([[1, 2, 3]],), ([[1], [2]],)),
    ),
    Family(
        "walk_matrix",
        "`matrix` is a non-empty list of rows, each a non-empty list of the same length. Define `$f(matrix)`: the "
        "list of all "
        "its entries $what.",
        """
def $f(matrix):
    cells = [(row, column) for row in range(len(matrix)) for column in range(len(matrix[0]))]
    cells.sort(key=lambda cell: $key)
    return [matrix[row][column] for row, column in cells]
""",
        {"$key": "$bad"},
        lambda rng: (matrix(rng, rng.randint(2, 4), rng.randint(2, 4)),),
        [
            variant(
                ([[1, 2], [3, 4]],),
                [1, 2, 3, 4],
                f="read_diagonals",
                key="(cell[0] + cell[1], cell[0])",
                bad="(cell[0] + cell[1], cell[1])",
                what="by antidiagonals: first the top left entry, then those whose row "
                "and column numbers add up to 1, then 2 and so on (counted from 0), within each from the top row "
                "downwards",
            ),
            variant(
                ([[1, 2], [3, 4]],),
                [1, 2, 4, 3],
                f="read_snake",
                bad="cell",
                key="(cell[0], cell[1] if cell[0] % 2 == 0 else -cell[1])",
                what="row by row from the top, the first row from left to right, the second from right to left "
                "and so on "
                "in turn",
            ),
            variant(
                ([[1, 2], [3, 4]],),
                [3, 1, 4, 2],
                f="read_columns_upwards",
                key="(cell[1], -cell[0])",
                bad="(cell[1], cell[0])",
                what="column by column from the left, each column from the bottom upwards",
            ),
            variant(
                ([[1, 2, 3], [4, 5, 6], [7, 8, 9]],),
                [3, 2, 6, 1, 5, 9, 4, 8, 7],
                f="read_main_diagonals",
                key="(cell[0] - cell[1], cell[0])",
                bad="(cell[1] - cell[0], cell[0])",
                what="by diagonals that run down to the right: first the one in the top right corner, then the "
                "next one "
                "below it and so on to the bottom left corner, each from its top row downwards",
            ),
        ],
        edges=(([[1]],), ([[1, 2, 3]],), ([[1], [2]],), ([[1, 2, 3], [4, 5, 6]],)),
    ),
    Family(
        "spiral",
        "`matrix` is a list of rows, all of the same length. Define `$f(matrix)`: the list of its entries on a "
        "spiral inwards "
        "that starts at the top left and goes $way. A matrix without entries gives `[]`.",
        """
def $f(matrix):
    rows, result = $start, []
    while rows:
        result += rows[0]
        rows = [list(row) for row in zip(*rows[1:])][::-1]
    return result
""",
        {"[::-1]": ""},
        lambda rng: (matrix(rng, rng.randint(2, 4), rng.randint(2, 4)),),
        [
            variant(
                ([[1, 2], [3, 4]],),
                [1, 2, 4, 3],
                f="spiral_clockwise",
                way="right first, then down (clockwise)",
                start="[list(row) for row in matrix]",
            ),
            variant(
                ([[1, 2], [3, 4]],),
                [1, 3, 4, 2],
                f="spiral_counterclockwise",
                way="down first, then right (counterclockwise)",
                start="[list(row) for row in zip(*matrix)]",
            ),
        ],
        edges=(([],), ([[5]],), ([[1, 2, 3]],), ([[1, 2, 3], [4, 5, 6], [7, 8, 9]],)),
    ),
    Family(
        "matrix_facts",
        "`matrix` is a non-empty list of rows, each a non-empty list of integers of the same length. "
        "Define `$f(matrix)`: $what.",
        """
def $f(matrix):
    columns = list(zip(*matrix))
    return $result
""",
        {"$result": "$bad"},
        lambda rng: (matrix(rng, rng.randint(1, 4), rng.randint(1, 4), -2, 6),),
        [
            variant(
                ([[1, 2], [3, 0]],),
                0,
                f="row_of_largest_sum",
                what="the number (from 0) of the row with the greatest sum, the first one if several tie",
                result="max(range(len(matrix)), key=lambda i: (sum(matrix[i]), -i))",
                bad="max(range(len(matrix)), key=lambda i: (sum(matrix[i]), i))",
                edges=(([[1], [1]],),),
            ),
            variant(
                ([[1, 2], [3, 0]],),
                [3, 2],
                f="column_maxima",
                what="the list of the greatest entries of its columns, from left to right",
                result="[max(column) for column in columns]",
                bad="[max(row) for row in matrix]",
            ),
            variant(
                ([[1, 2], [0, 3]],),
                [(0, 0)],
                f="saddle_points",
                edges=(([[1, 1], [1, 1]],), ([[1, 2, 0], [0, 3, 1]],)),
                what="the ascending list of the tuples (row, column), counted from 0, of the entries that are "
                "least (ties "
                "allowed) in their row and greatest (ties allowed) in their column; `[]` if there are none",
                result="[(i, j) for i, row in enumerate(matrix) for j, n in enumerate(row) if n == min(row) == "
                "max(columns[j])]",
                bad="[(i, j) for i, row in enumerate(matrix) for j, n in enumerate(row) if n == max(row) == "
                "min(columns[j])]",
            ),
            variant(
                ([[1, 2], [2, 0]],),
                True,
                f="is_symmetric",
                edges=(([[1, 2, 3], [2, 5, 6]],), ([[0, 1], [2, 0]],), ([[1, 2]],)),
                what="`True` if it is square and every entry equals the one with row and column exchanged, else "
                "`False`",
                result="matrix == [list(column) for column in columns]",
                bad="all(a == b for row, column in zip(matrix, columns) for a, b in zip(row, column))",
                draw=lambda rng: (lambda a, b, c, d: ([[a, b, c], [b, c, d], [c, rng.choice([d, d, a]), 1]],))(
                    *integers(rng, 0, 3, 4, 4)
                ),
            ),
        ],
        edges=(([[4]],), ([[1, 2, 3], [1, 2, 3]],), ([[0, 0], [0, 0]],)),
    ),
    Family(
        "intervals",
        "`intervals` is a list, in any order, of tuples (start, end) of integers with start < end, $meaning. "
        "Define `$f(intervals)`: $what.",
        """
def $f(intervals):
    merged = []
    for start, end in sorted(intervals):
        if merged and start $touch merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return $result
""",
        {"max(end, merged[-1][1])": "end"},
        lambda rng: ([(a, a + rng.randint(1, 7)) for a in integers(rng, 0, 20, 2, 6)],),
        [
            variant(
                ([(1, 3), (3, 5), (7, 8)],),
                [(1, 5), (7, 8)],
                f="merge_intervals",
                touch="<=",
                result="merged",
                meaning="each standing for the numbers from start to end, both included",
                what="the ascending list of tuples that remains when all intervals that have a number in common, "
                "directly "
                "or by way of others, are merged into one",
            ),
            variant(
                ([(1, 4), (3, 5), (5, 8)],),
                [(1, 5), (5, 8)],
                f="merge_overlapping",
                touch="<",
                result="merged",
                meaning="each standing for a stretch of time",
                what="the ascending list of tuples that remains when stretches that share more than a single moment, "
                "directly or by way of others, are merged into one; stretches that only touch stay apart",
            ),
            variant(
                ([(1, 4), (3, 5), (7, 8)],),
                5,
                f="covered_length",
                touch="<=",
                result="sum(end - start for start, end in merged)",
                meaning="each standing for a stretch of a line",
                what="the total length that at least one of them covers, 0 if there are none",
            ),
            variant(
                ([(1, 4), (3, 5), (7, 8)],),
                [(5, 7)],
                f="gaps",
                touch="<=",
                meaning="each standing for a stretch of a line",
                result="[(a[1], b[0]) for a, b in zip(merged, merged[1:])]",
                what="the ascending list of the tuples (start, end) of the gaps: stretches of positive length "
                "that none of "
                "them covers, between the first start and the last end",
            ),
        ],
        edges=(
            ([],),
            ([(2, 6)],),
            ([(1, 9), (2, 3), (4, 5)],),
            ([(5, 6), (1, 2)],),
            ([(1, 8), (2, 3), (5, 9), (8, 9)],),
            ([(0, 10), (2, 3), (12, 14)],),
        ),
    ),
    Family(
        "extremes_inside",
        "Define `$f(numbers)`: the ascending list of the positions (from 0) whose number is $what.",
        """
def $f(numbers):
    result = []
    for i, number in enumerate(numbers):
        neighbours = numbers[$low : i] + numbers[i + 1 : i + 2]
        if $condition:
            result.append(i)
    return result
""",
        {"$condition": "$bad"},
        lambda rng: (integers(rng, 0, 6, 4, 10),),
        [
            variant(
                ([3, 1, 2, 2],),
                [0],
                f="peaks",
                low="max(i - 1, 0)",
                bad="all(number >= n for n in neighbours)",
                condition="all(number > n for n in neighbours)",
                what="greater than each of its neighbours; the first and "
                "the last number have only one neighbour, and a single number is a peak",
            ),
            variant(
                ([3, 1, 2, 0],),
                [1],
                f="inner_valleys",
                low="max(i - 1, 0)",
                bad="all(number < n for n in neighbours)",
                condition="len(neighbours) == 2 and number < min(neighbours)",
                what="less than both of its neighbours; the first and the last number never count",
            ),
            variant(
                ([3, 1, 2, 4],),
                [0, 3],
                f="records",
                low="0",
                bad="all(number >= n for n in neighbours)",
                condition="all(number > n for n in numbers[:i])",
                what="greater than all numbers before it; the first number always counts",
            ),
            variant(
                ([3, 5, 2, 2],),
                [1, 3],
                f="right_leaders",
                low="0",
                bad="all(number >= n for n in numbers[i + 1 :])",
                condition="all(number > n for n in numbers[i + 1 :])",
                what="greater than all numbers behind it; the last number always counts",
            ),
        ],
        edges=(([],), ([4],), ([2, 2],), ([1, 2, 3],), ([3, 2, 1],)),
    ),
    Family(
        "sliding_window",
        "Define `$f(numbers, size)`: the list of $what of every `size` neighbouring numbers, from left to right "
        "(`size` is at "
        "least 1); `[]` if there are fewer than `size` numbers.",
        """
def $f(numbers, size):
    windows = [numbers[i : i + size] for i in range(len(numbers) - size + 1)]
    return [$value for window in windows]
""",
        {"- size + 1": "- size"},
        lambda rng: (integers(rng, -5, 15, 4, 9), rng.randint(1, 4)),
        [
            variant(([3, 1, 2], 2), [3, 2], f="window_maxima", what="the greatest", value="max(window)"),
            variant(([3, 1, 2], 2), [4, 3], f="window_sums", what="the sums", value="sum(window)"),
            variant(
                ([3, 1, 2], 2),
                [2, 1],
                f="window_ranges",
                what="the differences between the greatest and the least",
                value="max(window) - min(window)",
            ),
            variant(
                ([1, 1, 2], 2),
                [1, 2],
                f="window_varieties",
                what="the numbers of different values",
                value="len(set(window))",
                draw=lambda rng: (integers(rng, 0, 3, 5, 10), rng.randint(2, 4)),
            ),
        ],
        edges=(([], 1), ([1, 2], 3), ([1, 2, 3], 3), ([5, 4], 1)),
    ),
    Family(
        "inversions",
        "Define `$f(numbers)`: the number of pairs of positions i < j with $condition.",
        """
def $f(numbers):
    count = 0
    for j in range(len(numbers)):
        for i in range(j):
            if $test:
                count += 1
    return count
""",
        {"$test": "$bad"},
        lambda rng: (integers(rng, 0, 12, 4, 10),),
        [
            variant(
                ([3, 1, 1],),
                2,
                f="count_inversions",
                condition="numbers[i] > numbers[j]",
                test="numbers[i] > numbers[j]",
                bad="numbers[i] >= numbers[j]",
            ),
            variant(
                ([7, 3, 4],),
                1,
                f="count_strong_inversions",
                condition="numbers[i] > 2 * numbers[j]",
                test="numbers[i] > 2 * numbers[j]",
                bad="numbers[i] >= 2 * numbers[j]",
                edges=(([4, 2],),),
            ),
            variant(
                ([3, 1, 2],),
                1,
                f="count_far_inversions",
                condition="numbers[i] > numbers[j] and j - i at least 2",
                test="numbers[i] > numbers[j] and j - i >= 2",
                bad="numbers[i] > numbers[j] and j - i > 2",
            ),
            variant(
                ([1, 4, 2],),
                2,
                f="count_rises_by_parity",
                condition="numbers[i] < numbers[j] and an odd sum numbers[i] + numbers[j]",
                test="numbers[i] < numbers[j] and (numbers[i] + numbers[j]) % 2 == 1",
                bad="numbers[i] <= numbers[j] and (numbers[i] + numbers[j]) % 2 == 0",
            ),
        ],
        edges=(([],), ([1],), ([2, 2],), ([4, 3, 2, 1],), ([1, 2, 3],)),
    ),
    Family(
        "group",
        "Define `$f($items)`: a dictionary $what; the empty list gives `{}`.",
        """
def $f($items):
    result = {}
    for item in $order:
        $step
    return result
""",
        {"$step": "$bad"},
        lambda rng: (integers(rng, -6, 12, 3, 8),),
        [
            variant(
                ([4, 1, 7],),
                {1: [4, 1, 7]},
                f="group_by_remainder",
                items="numbers",
                order="numbers",
                what="that maps each remainder of the numbers on division by 3 (0, 1 or 2, also for negative "
                "numbers) to "
                "the list of the numbers that have it, in their order",
                step="result.setdefault(item % 3, []).append(item)",
                bad="result.setdefault(abs(item) % 3, []).append(item)",
                edges=(([-1, -2],),),
            ),
            variant(
                (["b", "aa", "a"],),
                {1: ["a", "b"], 2: ["aa"]},
                f="group_by_length",
                items="words",
                order="sorted(words)",
                what="that maps each length of the words to the alphabetical list of the different words of that "
                "length",
                step="group = result.setdefault(len(item), [])\n        if item not in group:\n            "
                "group.append(item)",
                bad="result.setdefault(len(item), []).append(item)",
                edges=((["a", "a"],), ([""],)),
                draw=lambda rng: (["a" * rng.randint(1, 3) + rng.choice("bc") for _ in range(rng.randint(2, 6))],),
            ),
            variant(
                ([4, 1, 4],),
                {4: (2, 0), 1: (1, 1)},
                f="count_and_first",
                items="numbers",
                order="numbers",
                what="that maps each number to the tuple (how often it occurs, position from 0 of its first "
                "occurrence)",
                step="result[item] = (numbers.count(item), numbers.index(item))",
                bad="result[item] = (numbers.count(item), len(numbers) - 1 - numbers[::-1].index(item))",
                edges=(([0, 0],),),
                draw=lambda rng: (integers(rng, 0, 4, 3, 8),),
            ),
        ],
        edges=(([],),),
    ),
    Family(
        "next_greater",
        "Define `$f(numbers)`: a list of the same length that has for each number $what.",
        """
def $f(numbers):
    result = []
    for i, number in enumerate(numbers):
        $find
        result.append($value)
    return result
""",
        {"$find": "$bad"},
        lambda rng: (integers(rng, 0, 9, 4, 8),),
        [
            variant(
                ([2, 1, 3],),
                [3, 3, None],
                f="next_greater_value",
                value="next(later, None)",
                what="the nearest greater number behind it, or `None` if there is none",
                find="later = (n for n in numbers[i + 1 :] if n > number)",
                bad="later = (n for n in numbers[i + 1 :] if n >= number)",
            ),
            variant(
                ([2, 1, 3],),
                [2, 1, 0],
                f="steps_to_greater",
                value="next(later, 0)",
                what="how many places behind it the nearest greater number stands (1 for the very next), or 0 if "
                "there is "
                "none",
                find="later = (j - i for j in range(i + 1, len(numbers)) if numbers[j] > number)",
                bad="later = (j - i for j in range(i + 1, len(numbers)) if numbers[j] >= number)",
            ),
            variant(
                ([2, 1, 3],),
                [-1, -1, 1],
                f="previous_smaller_value",
                value="next(earlier, -1)",
                what="the nearest smaller number before it, or -1 if there is none (all numbers are non-negative)",
                find="earlier = (n for n in numbers[:i][::-1] if n < number)",
                bad="earlier = (n for n in numbers[:i] if n < number)",
            ),
            variant(
                ([2, 1, 3],),
                [1, 0, 0],
                f="count_smaller_behind",
                value="later",
                what="how many of the numbers behind it are smaller",
                find="later = sum(n < number for n in numbers[i + 1 :])",
                bad="later = sum(n <= number for n in numbers[i + 1 :])",
            ),
        ],
        edges=(([],), ([5],), ([2, 2],), ([1, 2, 3],), ([3, 1, 0, 4],)),
    ),
    Family(
        "elimination",
        "`count` people numbered 1 to `count` (at least 1) stand in a circle. $rule Define `$f(count, step)`, "
        "`step` at least "
        "1: $what.",
        """
def $f(count, step):
    circle, order = list(range(1, count + 1)), []
    position = 0
    while circle:
        position = (position + step - $offset) % len(circle)
        order.append(circle.pop(position))
    return $result
""",
        {"step - $offset": "step - $bad"},
        lambda rng: (rng.randint(2, 12), rng.randint(1, 6)),
        [
            variant(
                (5, 2),
                [2, 4, 1, 5, 3],
                f="elimination_order",
                offset="1",
                bad="0",
                result="order",
                what="the list of all numbers in the order in which people leave",
                rule="Counting starts at person 1 and goes round in ascending order; every `step`-th person "
                "counted leaves, "
                "and counting goes on with the next one still there.",
            ),
            variant(
                (5, 2),
                3,
                f="last_one_left",
                offset="1",
                bad="0",
                result="order[-1]",
                what="the number of the last person to leave",
                rule="Counting starts at person 1 and goes round in ascending order; every `step`-th person "
                "counted leaves, "
                "and counting goes on with the next one still there.",
            ),
        ],
        edges=((1, 1), (1, 5), (4, 1), (3, 7)),
    ),
    Family(
        "search_sorted",
        "`numbers` is an ascending list of integers, in which numbers may repeat. Define `$f(numbers, value)`: $what.",
        """
from bisect import bisect_left, bisect_right


def $f(numbers, value):
    left = bisect_left(numbers, value)
    right = bisect_right(numbers, value)
    return $result
""",
        {"$result": "$bad"},
        lambda rng: (sorted(integers(rng, 0, 9, 3, 9)), rng.randint(-1, 10)),
        [
            variant(
                ([1, 3, 3, 5], 3),
                2,
                f="count_sorted",
                what="how often `value` occurs in it",
                result="right - left",
                bad="int(left < len(numbers) and numbers[left] == value)",
            ),
            variant(
                ([1, 3, 3, 5], 3),
                (1, 2),
                f="first_and_last",
                what="the tuple of the first and the last position (from 0) "
                "of `value`, or `(-1, -1)` if it does not occur",
                result="(left, right - 1) if left < right else (-1, -1)",
                bad="(left, right) if left < right else (-1, -1)",
            ),
            variant(
                ([1, 3, 3, 5], 4),
                3,
                f="nearest_value",
                what="the number in it nearest to `value`, the smaller one if two "
                "are equally near, `None` if the list is empty",
                bad="numbers[left] if left < len(numbers) else None",
                result="min(numbers, key=lambda number: (abs(number - value), number), default=None)",
            ),
            variant(
                ([1, 3, 3, 5], 3),
                5,
                f="least_above",
                what="the least number in it that is greater than `value`, or `None` if there is none",
                result="numbers[right] if right < len(numbers) else None",
                bad="numbers[left] if left < len(numbers) else None",
            ),
        ],
        edges=(([], 1), ([2], 2), ([2, 2, 2], 2), ([1, 5], 3), ([1, 2], 9)),
    ),
    Family(
        "balance_points",
        "Define `$f(numbers)`: $what.",
        """
def $f(numbers):
    found = [i for i in range($count) if $left == $right]
    return $result
""",
        {"$right": "$bad"},
        lambda rng: (integers(rng, -2, 3, 3, 8),),
        [
            variant(
                ([1, 2, 3, 3],),
                2,
                f="balance_position",
                count="len(numbers)",
                left="sum(numbers[:i])",
                bad="sum(numbers[i:])",
                right="sum(numbers[i + 1 :])",
                result="found[0] if found else -1",
                what="the smallest position (from 0) such that the numbers before it and the numbers behind it "
                "have the same "
                "sum (the sum of no numbers is 0), or -1 if there is none",
            ),
            variant(
                ([1, 2, 3],),
                1,
                f="count_even_splits",
                count="1, len(numbers)",
                left="sum(numbers[:i])",
                right="sum(numbers[i:])",
                bad="sum(numbers[i + 1 :])",
                result="len(found)",
                what="in how many ways the list can be cut into two non-empty parts, left and right, with the same sum",
            ),
            variant(
                ([3, 1, 0, 3],),
                [1, 3],
                f="fixed_positions",
                count="len(numbers)",
                left="numbers[i]",
                right="i",
                bad="i + 1",
                result="found",
                what="the ascending list of the positions, counted from 0, whose number equals the position",
                edges=(([0, 2, 1],),),
                draw=lambda rng: (integers(rng, 0, 5, 4, 8),),
            ),
        ],
        edges=(([],), ([0],), ([1],), ([0, 0],), ([1, -1, 1],)),
    ),
    Family(
        "ranking",
        "The first line of the input is a positive integer n, followed by n lines, each with a name (letters "
        "only, no name "
        "twice) and an integer score, separated by a space. Write a program that prints one line per name with "
        "the rank and "
        "the name, separated by a space: highest score first, equal scores in alphabetical order of the names. $rule",
        """
rows = [input().split() for _ in range(int(input()))]
scores = {name: int(score) for name, score in rows}
for name in sorted(scores, key=lambda name: (-scores[name], name)):
    rank = 1 + $better
    print(rank, name)
""",
        {"$better": "$bad"},
        lambda rng: (lambda names: lines(len(names), *((name, rng.randint(1, 3) * 10) for name in names)))(
            rng.sample(["Ada", "Bob", "Cy", "Dan", "Eve", "Flo"], rng.randint(2, 6))
        ),
        [
            variant(
                "3\nBo 5\nAl 5\nCy 2\n",
                "1 Al\n1 Bo\n3 Cy",
                better="sum(score > scores[name] for score in scores.values())",
                bad="len({score for score in scores.values() if score > scores[name]})",
                rule="The rank is 1 plus the number of names with a higher score (as in 1, 1, 3).",
            ),
            variant(
                "3\nBo 5\nAl 5\nCy 2\n",
                "1 Al\n1 Bo\n2 Cy",
                bad="sum(score > scores[name] for score in scores.values())",
                better="len({score for score in scores.values() if score > scores[name]})",
                rule="The rank is 1 plus the number of different higher scores (as in 1, 1, 2).",
            ),
            variant(
                "3\nBo 5\nAl 5\nCy 2\n",
                "2 Al\n2 Bo\n3 Cy",
                better="sum(score >= scores[name] for score in scores.values()) - 1",
                bad="sum(score > scores[name] for score in scores.values())",
                rule="The rank is the number of names with the same or a higher score (as in 2, 2, 3).",
            ),
        ],
        edges=("1\nZed 0\n", "4\nA 7\nB 7\nC 9\nD 7\n"),
        stdio=True,
    ),
    Family(
        "range_queries",
        "The first line of the input has integers separated by spaces (at least one), the second a positive integer q, "
        "followed by q lines, each with two positions a and b, separated by a space. Positions are counted from "
        "$base, and "
        "a <= b. Write a program that prints for each of the q lines $what from position a to position b, both "
        "included.",
        """
numbers = list(map(int, input().split()))
for _ in range(int(input())):
    a, b = map(int, input().split())
    print($value)
""",
        {"$value": "$bad"},
        lambda rng: (
            lambda numbers: lines(
                numbers,
                3,
                *(sorted((rng.randint(1, len(numbers) - 1), rng.randint(1, len(numbers) - 1))) for _ in range(3)),
            )
        )(integers(rng, -9, 20, 3, 8)),
        [
            variant(
                "4 5 6\n2\n1 2\n3 3\n",
                "9\n6",
                base="1",
                what="the sum of the numbers",
                value="sum(numbers[a - 1 : b])",
                bad="sum(numbers[a:b])",
                edges=("7\n1\n1 1\n",),
            ),
            variant(
                "4 5 6\n2\n0 1\n2 2\n",
                "4\n6",
                base="0",
                what="the least of the numbers",
                value="min(numbers[a : b + 1])",
                bad="min(numbers[a:b] or [numbers[a]])",
                edges=("7\n1\n0 0\n",),
            ),
            variant(
                "4 5 6\n2\n1 2\n3 3\n",
                "5 4\n6",
                base="1",
                what="a line with the numbers in reverse order, separated by spaces,",
                value="*numbers[a - 1 : b][::-1]",
                bad="*numbers[a - 1 : b]",
                edges=("7\n1\n1 1\n",),
            ),
        ],
        stdio=True,
    ),
]
