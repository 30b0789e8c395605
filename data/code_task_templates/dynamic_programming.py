"""Tasks whose natural solution is dynamic programming: counting ways, cheapest plans, subsequences, games."""

from .common import Family, blocked, integers, lines, matrix, variant, word

FAMILIES = [
    Family(
        "coins",
        "`coins` is a list of different positive integers, the values of coins$supply. Define `$f(coins, total)` "
        "for an "
        "integer `total` of at least 0: $what.",
        """
def $f(coins, total):
    table = [$zero] + [$nothing] * total
    $loops
    return $result
""",
        {"$loops": "$bad"},
        lambda rng: (rng.sample(range(1, 9), rng.randint(2, 4)), rng.randint(3, 15)),
        [
            variant(
                ([1, 3, 4], 6),
                2,
                f="fewest_coins",
                supply=", each available without limit",
                zero="0",
                nothing='float("inf")',
                what="the least number of coins whose values add up to `total`, or -1 if no coins do; 0 needs no coins",
                result='table[total] if table[total] < float("inf") else -1',
                loops="for amount in range(1, total + 1):\n"
                "        table[amount] = min([table[amount - c] + 1 for c in coins if c <= amount], "
                'default=float("inf"))',
                bad="rest = total\n    table[total] = 0\n    for coin in sorted(coins, reverse=True):\n"
                "        table[total] += rest // coin\n        rest %= coin\n"
                '    if rest:\n        table[total] = float("inf")',
            ),
            variant(
                ([1, 2], 4),
                3,
                f="count_coin_sets",
                supply=", each available without limit",
                zero="1",
                nothing="0",
                what="the number of ways to choose coins that add up to `total`, where only the number of coins "
                "of each "
                "value matters, not their order; there is one way to make 0",
                result="table[total]",
                loops="for coin in coins:\n        for amount in range(coin, total + 1):\n"
                "            table[amount] += table[amount - coin]",
                bad="for amount in range(1, total + 1):\n"
                "        table[amount] = sum(table[amount - coin] for coin in coins if coin <= amount)",
            ),
            variant(
                ([1, 2], 4),
                5,
                f="count_coin_orders",
                supply=", each available without limit",
                zero="1",
                nothing="0",
                what="the number of sequences of coins that add up to `total`, where sequences in different order "
                "count as "
                "different; there is one sequence for 0",
                result="table[total]",
                loops="for amount in range(1, total + 1):\n"
                "        table[amount] = sum(table[amount - coin] for coin in coins if coin <= amount)",
                bad="for coin in coins:\n        for amount in range(coin, total + 1):\n"
                "            table[amount] += table[amount - coin]",
            ),
            variant(
                ([1, 2, 3], 3),
                2,
                f="count_single_coin_sets",
                supply=", each available only once",
                zero="1",
                nothing="0",
                what="the number of sets of coins that add up to `total`; the empty set makes 0",
                result="table[total]",
                loops="for coin in coins:\n        for amount in range(total, coin - 1, -1):\n"
                "            table[amount] += table[amount - coin]",
                bad="for coin in coins:\n        for amount in range(coin, total + 1):\n"
                "            table[amount] += table[amount - coin]",
            ),
        ],
        edges=(([], 0), ([], 3), ([5], 0), ([2], 3), ([5, 2], 10), ([1, 2, 3], 6)),
    ),
    Family(
        "stairs",
        "Define `$f(n)`: the number of $what. $zero `n` is an integer from 0 to 60.",
        """
def $f(n):
    ways = [1]
    for i in range(1, n + 1):
        ways.append(sum(ways[i - step] for step in $steps if step <= i))
    return $result
""",
        {"step <= i": "step < i"},
        lambda rng: (rng.randint(3, 30),),
        [
            variant(
                (4,),
                5,
                f="climb_by_1_or_2",
                what="ways to climb `n` stairs in steps of 1 or 2 stairs, where the order of the steps matters",
                zero="There is one way to climb none.",
                steps="(1, 2)",
                result="ways[n]",
            ),
            variant(
                (5,),
                5,
                f="climb_by_1_3_5",
                what="ways to climb `n` stairs in steps of 1, 3 or 5 stairs, where the order of the steps matters",
                zero="There is one way to climb none.",
                steps="(1, 3, 5)",
                result="ways[n]",
            ),
            variant(
                (5,),
                2,
                f="write_as_2_and_3",
                what="sequences of the numbers 2 and 3 with the sum `n`",
                zero="The empty sequence has the sum 0.",
                steps="(2, 3)",
                result="ways[n]",
            ),
            variant(
                (4,),
                11,
                f="tile_in_two_colours",
                what="ways to tile a strip of length `n` with tiles of length 1, which "
                "are grey, and tiles of length 2, which are red or blue, where the order and the colours of the tiles "
                "matter",
                zero="There is one way to tile length 0.",
                steps="(1, 2, 2)",
                result="ways[n]",
            ),
        ],
        edges=((0,), (1,), (2,), (3,), (60,)),
    ),
    Family(
        "knapsack",
        "`items` is a list of tuples (weight, value) of positive integers; $supply. Define `$f(items, capacity)` "
        "for an "
        "integer `capacity` of at least 0: the greatest total value of items whose total weight is $limit$none.",
        """
def $f(items, capacity):
    best = [0] + [$start] * capacity
    for weight, value in items:
        for room in $rooms:
            best[room] = max(best[room], best[room - weight] + value)
    return $result
""",
        {"$rooms": "$bad"},
        lambda rng: ([(rng.randint(1, 6), rng.randint(1, 12)) for _ in range(rng.randint(2, 5))], rng.randint(4, 14)),
        [
            variant(
                ([(2, 3), (3, 4)], 4),
                4,
                f="knapsack_single",
                supply="each may be taken at most once",
                start="0",
                limit="at most `capacity`",
                none="; 0 if nothing fits",
                rooms="range(capacity, weight - 1, -1)",
                bad="range(weight, capacity + 1)",
                result="best[capacity]",
            ),
            variant(
                ([(2, 3), (3, 4)], 4),
                6,
                f="knapsack_repeated",
                supply="each may be taken any number of times",
                start="0",
                limit="at most `capacity`",
                none="; 0 if nothing fits",
                rooms="range(weight, capacity + 1)",
                bad="range(capacity, weight - 1, -1)",
                result="best[capacity]",
            ),
            variant(
                ([(2, 3), (3, 4)], 4),
                None,
                f="knapsack_exact",
                supply="each may be taken at most once",
                start='float("-inf")',
                limit="exactly `capacity`",
                none="; 0 if `capacity` is 0, `None` if no choice weighs exactly `capacity`",
                rooms="range(capacity, weight - 1, -1)",
                bad="range(weight, capacity + 1)",
                result="best[capacity] if best[capacity] >= 0 else None",
                edges=(([(2, 3), (3, 4), (1, 5)], 3),),
            ),
        ],
        edges=(([], 5), ([(3, 10)], 2), ([(3, 10)], 6), ([(1, 1)], 0)),
    ),
    Family(
        "edit_distance",
        "Define `$f(first, second)`: the least total cost of turning the text `first` into the text `second`, "
        "where $costs.",
        """
def $f(first, second):
    row = [j * $insertion for j in range(len(second) + 1)]
    for i, a in enumerate(first, 1):
        above, row = row, [i * $deletion]
        for j, b in enumerate(second, 1):
            change = above[j - 1] + (0 if a == b else $replacement)
            row.append(min(change, above[j] + $deletion, row[j - 1] + $insertion))
    return row[-1]
""",
        {"else $replacement": "else $bad", "above[j] + $deletion, row[j - 1] + $insertion": "$swapped"},
        lambda rng: (word(rng, "abc", 2, 8), word(rng, "abcd", 2, 8)),
        [
            variant(
                ("kitten", "sitting"),
                3,
                f="levenshtein",
                insertion="1",
                deletion="1",
                replacement="1",
                bad="2",
                swapped="above[j] + 1, row[j - 1] + 1",
                costs="inserting, deleting or replacing one character costs 1 each",
            ),
            variant(
                ("kitten", "sitting"),
                5,
                f="insert_delete_distance",
                insertion="1",
                deletion="1",
                replacement="2",
                bad="1",
                swapped="above[j] + 1, row[j - 1] + 1",
                costs="inserting or deleting one character costs 1 each and nothing else is allowed",
            ),
            variant(
                ("ab", "bcd"),
                5,
                f="weighted_edit_distance",
                insertion="2",
                deletion="1",
                replacement="2",
                bad="2",
                swapped="above[j] + 2, row[j - 1] + 1",
                edges=(("", "abc"), ("abc", "")),
                costs="inserting a character costs 2, deleting one costs 1 and replacing one by another costs 2",
            ),
        ],
        edges=(("", ""), ("abc", "abc"), ("", "ab"), ("ab", "ba")),
        oracle="""
def $f(first, second):
    if not first or not second:
        return len(first) * $deletion + len(second) * $insertion
    if first[0] == second[0]:
        return $f(first[1:], second[1:])
    rest = $f(first[1:], second[1:]) + $replacement
    return min(rest, $f(first[1:], second) + $deletion, $f(first, second[1:]) + $insertion)
""",
    ),
    Family(
        "common_sequences",
        "A $kind of a text is what remains of it after deleting $deleted. Define `$f(first, second)`: $what.",
        """
def $f(first, second):
    best = {}
    for i in range(len(first), -1, -1):
        for j in range(len(second), -1, -1):
            if i == len(first) or j == len(second):
                best[i, j] = ""
            elif first[i] == second[j]:
                best[i, j] = first[i] + best[i + 1, j + 1]
            else:
                best[i, j] = $else_case
    return $result
""",
        {"$else_case": "$bad"},
        lambda rng: (word(rng, "abc", 3, 9), word(rng, "abc", 3, 9)),
        [
            variant(
                ("abcb", "bcab"),
                3,
                f="longest_common_subsequence",
                kind="subsequence",
                result="len(best[0, 0])",
                deleted="any of its characters, the others keeping their order",
                what="the length of the longest text that is a subsequence of both, 0 if they share no character",
                else_case="max(best[i + 1, j], best[i, j + 1], key=len)",
                bad="best[i + 1, j]",
            ),
            variant(
                ("ab", "ba"),
                "a",
                f="smallest_common_subsequence",
                kind="subsequence",
                result="best[0, 0]",
                deleted="any of its characters, the others keeping their order",
                what="the longest text that is a subsequence of both, the alphabetically smallest if several tie "
                '(`""` if they share no character)',
                else_case="min(best[i + 1, j], best[i, j + 1], key=lambda text: (-len(text), text))",
                bad="max(best[i + 1, j], best[i, j + 1], key=len)",
                edges=(("ba", "ab"), ("acb", "bca")),
            ),
            variant(
                ("xabc", "abxc"),
                2,
                f="longest_common_substring",
                kind="substring",
                deleted="characters at its start and at its end only",
                else_case='""',
                bad="best[i + 1, j + 1]",
                result="max(map(len, best.values()))",
                what="the length of the longest text that is a substring of both, 0 if they share no character",
            ),
        ],
        edges=(("", ""), ("", "a"), ("abc", "abc"), ("abc", "xyz"), ("aab", "aba")),
        oracle="""
def $f(first, second):
    def parts(text):
        whole = range(1 << len(text))
        return {tuple(i for i in range(len(text)) if mask >> i & 1) for mask in whole}

    def texts(text):
        near = "$kind" == "substring"
        return {"".join(text[i] for i in part) for part in parts(text)
                if not near or not part or part[-1] - part[0] == len(part) - 1}

    best = min(texts(first) & texts(second), key=lambda text: (-len(text), text))
    return best if "$f" == "smallest_common_subsequence" else len(best)
""",
    ),
    Family(
        "increasing_subsequence",
        "A subsequence of a list is what remains after deleting any of its entries, the others keeping their order. "
        "Define `$f(numbers)`: $what.",
        """
def $f(numbers):
    best = []
    for i, number in enumerate(numbers):
        shorter = [best[j] for j in range(i) if numbers[j] $compare number]
        best.append($choose(shorter, key=$key, default=[]) + [number])
    return $result
""",
        {"numbers[j] $compare": "numbers[j] $bad"},
        lambda rng: (integers(rng, 0, 9, 5, 9),),
        [
            variant(
                ([3, 1, 2, 2],),
                2,
                f="longest_increasing",
                compare="<",
                bad="<=",
                choose="max",
                key="len",
                what="the length of the longest subsequence in which each number is greater than the one before "
                "it; 0 for "
                "the empty list",
                result="max(map(len, best), default=0)",
            ),
            variant(
                ([3, 1, 2, 2],),
                3,
                f="longest_non_decreasing",
                compare="<=",
                bad="<",
                choose="max",
                key="len",
                what="the length of the longest subsequence in which no number is less than the one before it; 0 "
                "for the "
                "empty list",
                result="max(map(len, best), default=0)",
            ),
            variant(
                ([9, 1, 2, 9, 8],),
                12,
                f="heaviest_increasing",
                compare="<",
                bad="<=",
                choose="max",
                key="sum",
                what="the greatest sum of a subsequence in which each number is greater than the one before it; the "
                "numbers are non-negative, and the empty list gives 0",
                result="max(map(sum, best), default=0)",
            ),
            variant(
                ([3, 1, 4, 2],),
                [1, 2],
                f="smallest_longest_increasing",
                compare="<",
                bad="<=",
                choose="min",
                key="lambda chain: (-len(chain), chain)",
                what="the longest subsequence in which each number is greater than the one before it, as a list; if "
                "several tie, the lexicographically smallest one (compare the first numbers, then the second and so "
                "on); `[]` for the empty list",
                result="min(best, key=lambda chain: (-len(chain), chain), default=[])",
            ),
        ],
        edges=(([],), ([4],), ([2, 2, 2],), ([3, 2, 1],), ([1, 2, 3],)),
        oracle="""
from itertools import combinations


def $f(numbers):
    chains = [list(c) for size in range(len(numbers) + 1) for c in combinations(numbers, size)]
    chains = [c for c in chains if all(a $compare b for a, b in zip(c, c[1:]))]
    if "$key" == "sum":
        return max(map(sum, chains))
    best = min(chains, key=lambda chain: (-len(chain), chain))
    return best if "$choose" == "min" else len(best)
""",
    ),
    Family(
        "best_stretch",
        "A stretch is a run of $kind neighbouring entries of a list. Define `$f(numbers)`: $what.",
        """
def $f(numbers):
    stretches = [(i, j) for i in range(len(numbers)) for j in range(i + 1, len(numbers) + 1)]
    values = [($value, -i, j - i) for i, j in stretches]
    return $result
""",
        {"$result": "$bad"},
        lambda rng: (integers(rng, -9, 8, 3, 9),),
        [
            variant(
                ([2, -3, 4, 1],),
                5,
                f="greatest_stretch_sum",
                kind="one or more",
                value="sum(numbers[i:j])",
                what="the greatest sum of a stretch, `None` for the empty list",
                result="max(values)[0] if values else None",
                bad="max(0, max(values)[0]) if values else None",
                edges=(([-3, -1, -2],),),
            ),
            variant(
                ([-2, -3],),
                0,
                f="greatest_stretch_sum_or_zero",
                kind="zero or more",
                value="sum(numbers[i:j])",
                what="the greatest sum of a stretch, where the empty stretch has the sum 0",
                result="max(0, max(values)[0]) if values else 0",
                bad="max(values)[0] if values else 0",
                edges=(([-3, -1, -2],),),
            ),
            variant(
                ([2, -3, 4, 1],),
                [4, 1],
                f="greatest_stretch",
                kind="one or more",
                value="sum(numbers[i:j])",
                what="the stretch with the greatest sum, as a list; if several tie, the one that starts first, "
                "and of those "
                "the longest one; `[]` for the empty list",
                result="numbers[-max(values)[1] :][: max(values)[2]] if values else []",
                bad="numbers[-(best := max(values, key=lambda v: (v[0], v[1], -v[2])))[1] :][: best[2]] if values "
                "else []",
                edges=(([0, 2, 0],), ([1, -1, 1],), ([0, 0],)),
            ),
            variant(
                ([3, -3, 4, -4],),
                3,
                f="stretches_of_sum_zero",
                kind="one or more",
                value="sum(numbers[i:j]) == 0",
                what="the number of stretches whose sum is 0 (stretches at different places count separately)",
                result="sum(value for value, *_ in values)",
                bad="len({i for value, i, _ in values if value})",
                edges=(([0, 0, 0],), ([1, -1, 0],)),
                draw=lambda rng: (integers(rng, -2, 2, 4, 9),),
            ),
        ],
        edges=(([],), ([-5],), ([3],), ([0],)),
    ),
    Family(
        "skip_neighbours",
        "Define `$f(numbers)`: the greatest possible sum of entries of the list of non-negative integers "
        "`numbers` if no two "
        "of them $rule; 0 for the empty list.",
        """
def $f(numbers):
    def best(row):
        table = [0] * $gap
        for number in row:
            table.append(max(table[-1], table[-$gap] + number))
        return table[-1]

    return $result
""",
        {"$result": "$bad"},
        lambda rng: (integers(rng, 0, 12, 4, 9),),
        [
            variant(
                ([2, 7, 9, 3],),
                11,
                f="best_without_neighbours",
                rule="may stand directly next to each other",
                gap="2",
                result="best(numbers)",
                bad="max(sum(numbers[::2]), sum(numbers[1::2]))",
            ),
            variant(
                ([2, 7, 9, 3],),
                11,
                f="best_in_circle",
                rule="may stand directly next to each other, where the first and "
                "the last entry also count as next to each other (a single entry may be taken)",
                gap="2",
                result="max(best(numbers[1:]), best(numbers[:-1]), *numbers, 0)",
                bad="best(numbers)",
                edges=(([5, 1, 5],), ([4, 4],)),
            ),
            variant(
                ([2, 7, 9, 3],),
                9,
                f="best_with_two_between",
                rule="may be taken unless at least two other entries lie between them",
                gap="3",
                result="best(numbers)",
                bad="max(sum(numbers[i::3]) for i in range(3))",
            ),
        ],
        edges=(([],), ([5],), ([3, 8],), ([0, 0, 0],), ([5, 1, 1, 5],)),
        oracle="""
def $f(numbers):
    size, best = len(numbers), 0
    for mask in range(1 << size):
        taken = [i for i in range(size) if mask >> i & 1]
        fits = all(b - a >= $gap for a, b in zip(taken, taken[1:]))
        if "$f" == "best_in_circle" and size > 1 and 0 in taken and size - 1 in taken:
            fits = False
        if fits:
            best = max(best, sum(numbers[i] for i in taken))
    return best
""",
    ),
    Family(
        "grid_walk",
        "`grid` is a non-empty list of rows, each a non-empty list of the same length, of $cells. A walk starts "
        "in the top left "
        "cell, ends in the bottom right one and goes $moves in each step. Define `$f(grid)`: $what.",
        """
def $f(grid):
    best = {}
    for i, row in enumerate(grid):
        for j, cell in enumerate(row):
            before = [best[cell] for cell in ($sources) if cell in best]
            best[i, j] = $first if i == j == 0 else $later
    return best[len(grid) - 1, len(grid[0]) - 1]
""",
        {"($sources)": "($bad)"},
        lambda rng: (matrix(rng, rng.randint(2, 4), rng.randint(2, 4), 0, 9),),
        [
            variant(
                ([[1, 9], [2, 3]],),
                6,
                f="cheapest_walk",
                cells="non-negative integers",
                first="cell",
                moves="one cell right or one cell down",
                what="the least possible sum of the cells on a walk, both ends included",
                sources="(i - 1, j), (i, j - 1)",
                later="cell + min(before)",
                bad="(i - 1, j), (i, j - 1), (i - 1, j - 1)",
            ),
            variant(
                ([[1, 9], [2, 3]],),
                4,
                f="cheapest_diagonal_walk",
                cells="non-negative integers",
                first="cell",
                moves="one cell right, one cell down or diagonally one cell right and down",
                later="cell + min(before)",
                what="the least possible sum of the cells on a walk, both ends included",
                sources="(i - 1, j), (i, j - 1), (i - 1, j - 1)",
                bad="(i - 1, j), (i, j - 1)",
            ),
            variant(
                ([[0, 0], [1, 0]],),
                1,
                f="count_free_walks",
                cells="0 (free) and 1 (blocked)",
                first="1 - cell",
                moves="one cell right or one cell down",
                what="the number of different walks over free cells only, 0 if the first or the last cell is blocked",
                sources="(i - 1, j), (i, j - 1)",
                later="0 if cell else sum(before)",
                bad="(i - 1, j), (i, j - 1), (i - 1, j - 1)",
                edges=(([[1]],), ([[0, 1], [1, 0]],), ([[0, 0, 0], [0, 1, 0], [0, 0, 0]],)),
                draw=lambda rng: (blocked(rng, rng.randint(2, 4), 4, 0.15),),
            ),
            variant(
                ([[1, 9], [2, 3]],),
                13,
                f="richest_walk",
                cells="integers",
                first="cell",
                moves="one cell right or one cell down",
                what="the greatest possible sum of the cells on a walk, both ends included",
                sources="(i - 1, j), (i, j - 1)",
                later="cell + max(before)",
                bad="(i - 1, j), (i, j - 1), (i - 1, j - 1)",
                edges=(([[-1, -5], [-9, -2]],),),
                draw=lambda rng: (matrix(rng, rng.randint(2, 4), rng.randint(2, 4), -9, 9),),
            ),
        ],
        edges=(([[0]],), ([[0, 1]],), ([[0], [0]],), ([[0, 0, 0], [0, 0, 0]],)),
    ),
    Family(
        "subset_sums",
        "Define `$f(numbers$more)` for a list of positive integers: $what. Each position of the list may be used "
        "at most once.",
        """
def $f(numbers$more):
    sums = {0}
    for number in numbers:
        sums |= {other + number for other in sums}
    total = sum(numbers)
    return $result
""",
        {"$result": "$bad"},
        lambda rng: (integers(rng, 1, 15, 3, 6),),
        [
            variant(
                ([3, 1, 2],),
                True,
                f="can_halve",
                more="",
                what="`True` if some of its numbers have exactly half the sum of "
                "all, else `False` (the empty list gives `True`)",
                result="total % 2 == 0 and total // 2 in sums",
                bad="total // 2 in sums",
                edges=(([2, 2, 1],), ([1, 5, 11, 5],)),
            ),
            variant(
                ([3, 1, 7],),
                3,
                f="least_split_difference",
                more="",
                what="the least possible difference between the sums "
                "of two groups, when each number is put into one of the two (a group may be empty)",
                result="min(abs(total - 2 * part) for part in sums)",
                bad="total % 2",
            ),
            variant(
                ([3, 4, 8], 10),
                8,
                f="best_sum_below",
                more=", limit",
                what="the greatest sum of some of its numbers that "
                "is at most `limit` (an integer of at least 0), where the sum of no numbers is 0",
                result="max(part for part in sums if part <= limit)",
                bad="max(part for part in sums if part < limit or not part)",
                edges=(([], 4), ([5], 5), ([5], 3), ([2, 3], 0)),
                draw=lambda rng: (integers(rng, 2, 15, 3, 6), rng.randint(3, 30)),
            ),
            variant(
                ([1, 2, 5],),
                4,
                f="least_missing_sum",
                more="",
                what="the least positive integer that is not the sum of some of its numbers",
                result="next(part for part in range(1, total + 2) if part not in sums)",
                bad="next(part for part in range(1, total + 2) if part not in numbers)",
                draw=lambda rng: (integers(rng, 1, 5, 2, 6),),
            ),
        ],
        edges=(),
    ),
    Family(
        "palindromic_parts",
        "A palindrome reads the same forwards and backwards. Define `$f(text)`: $what, 0 for the empty text.",
        """
def $f(text):
    size = len(text)
    best = {}
    for start in range(size, -1, -1):
        for end in range(start, size + 1):
            inside = best.get((start + 1, end - 1), 0)
            if end - start < 2:
                best[start, end] = end - start
            elif text[start] == text[end - 1]:
                best[start, end] = $equal
            else:
                best[start, end] = $different
    return $result
""",
        {"$result": "$bad"},
        lambda rng: (word(rng, "abc", 4, 10),),
        [
            variant(
                ("abcab",),
                3,
                f="longest_palindromic_subsequence",
                equal="inside + 2",
                result="best[0, size]",
                different="max(best[start + 1, end], best[start, end - 1])",
                bad="max([n for (i, j), n in best.items() if n == j - i])",
                what="the length of the longest palindrome that remains after deleting some (or none) of its "
                "characters",
            ),
            variant(
                ("abcab",),
                2,
                f="insertions_to_palindrome",
                equal="inside + 2",
                result="size - best[0, size]",
                different="max(best[start + 1, end], best[start, end - 1])",
                bad="best[0, size] - 1 if size else 0",
                what="the least number of characters that must be inserted (anywhere) to make it a palindrome",
            ),
            variant(
                ("abca",),
                1,
                f="changes_to_palindrome",
                equal="inside if end - start > 3 else 0",
                different="1 + (inside if end - start > 3 else 0)",
                bad="sum(a != b for a, b in zip(text, text[::-1]))",
                result="best[0, size] if size > 1 else 0",
                what="the least number of characters that must be replaced by others to make it a palindrome",
            ),
        ],
        edges=(("",), ("a",), ("ab",), ("abba",), ("abab",)),
        oracle="""
def $f(text):
    if "$f" == "changes_to_palindrome":
        return sum(a != b for a, b in zip(text, text[::-1])) // 2
    masks = range(1 << len(text))
    texts = ["".join(text[i] for i in range(len(text)) if mask >> i & 1) for mask in masks]
    longest = max(len(part) for part in texts if part == part[::-1])
    return len(text) - longest if "$f" == "insertions_to_palindrome" else longest
""",
    ),
    Family(
        "palindromic_substrings",
        "A palindrome reads the same forwards and backwards. Define `$f(text)`: $what.",
        """
def $f(text):
    size = len(text)
    found = [(i, j) for i in range(size) for j in range(i + 1, size + 1) if text[i:j] == text[i:j][::-1]]
    pieces = [0] + [size] * size
    for i, j in sorted(found):
        pieces[j] = min(pieces[j], pieces[i] + 1)
    return $result
""",
        {"$result": "$bad"},
        lambda rng: (word(rng, "ab" if rng.random() < 0.5 else "abc", 5, 11),),
        [
            variant(
                ("aab",),
                4,
                f="count_palindromic_substrings",
                what="the number of its non-empty substrings that are "
                "palindromes, where substrings at different places count separately even if they are equal",
                result="len(found)",
                bad="len({text[i:j] for i, j in found})",
            ),
            variant(
                ("babad",),
                "bab",
                f="longest_palindromic_substring",
                what="its longest substring that is a palindrome, the "
                'leftmost one if several tie, `""` for the empty text',
                result='max((text[i:j] for i, j in found), key=len, default="")',
                bad='max((text[i:j] for i, j in found[::-1]), key=len, default="")',
            ),
            variant(
                ("aab",),
                2,
                f="fewest_palindromic_pieces",
                what="the least number of pieces into which it can be cut such "
                "that each piece is a palindrome, 0 for the empty text",
                result="pieces[size]",
                bad="max(pieces[size] - 1, 0)",
            ),
        ],
        edges=(("",), ("a",), ("aaa",), ("abc",), ("abcba",)),
    ),
    Family(
        "word_break",
        "`words` is a list of different non-empty texts. Define `$f(text, words)`: $what. Words may be used "
        "repeatedly; "
        "$empty.",
        """
def $f(text, words):
    table = [$start]
    for end in range(1, len(text) + 1):
        shorter = [table[end - len(word)] for word in words if text[:end].endswith(word)]
        table.append($combine)
    return table[-1]
""",
        {"text[:end].endswith(word)": "word in text[:end]"},
        lambda rng: (word(rng, "ab", 3, 9), sorted({word(rng, "ab", 1, 3) for _ in range(rng.randint(2, 4))})),
        [
            variant(
                ("aab", ["a", "ab"]),
                True,
                f="can_split",
                start="True",
                combine="any(shorter)",
                what="`True` if `text` can be written as a sequence of words from the list, one directly after "
                "the other, "
                "else `False`",
                empty="the empty text can",
                edges=(("aba", ["ab"]), ("b", ["bb"])),
            ),
            variant(
                ("aab", ["a", "ab", "b"]),
                2,
                f="count_splits",
                start="1",
                combine="sum(shorter)",
                what="in how many ways `text` can be written as a sequence of words from the list, one directly "
                "after the "
                "other",
                empty="there is one way for the empty text",
            ),
            variant(
                ("aab", ["a", "ab", "b"]),
                2,
                f="fewest_words",
                start="0",
                combine="min((n + 1 for n in shorter if n >= 0), default=-1)",
                what="the least number of words from the list that, written one directly after the other, give "
                "`text`, or "
                "-1 if that is impossible",
                empty="the empty text needs 0",
            ),
        ],
        edges=(("", ["a"]), ("a", []), ("aaa", ["a", "aa"]), ("abc", ["ab", "bc"])),
        oracle="""
def $f(text, words):
    def splits(rest, used):
        if not rest:
            return [used]
        return [n for w in words if rest.startswith(w) for n in splits(rest[len(w) :], used + 1)]

    found = splits(text, 0)
    return {"can_split": bool(found), "count_splits": len(found), "fewest_words": min(found, default=-1)}["$f"]
""",
    ),
    Family(
        "decode_digits",
        "Letters are written as numbers, A as 1, B as 2 and so on up to $last, one directly after the other "
        "without leading "
        "zeros. Define `$f(digits)`: the number of texts that the digits may stand for; $empty.",
        """
def $f(digits):
    ways = [$start]
    for end in range(1, len(digits) + 1):
        count = 0
        for size in (1, 2):
            part = digits[end - size : end] if size <= end else ""
            if part and part[0] != "0" and int(part) <= $limit:
                count += ways[end - size]
        ways.append(count)
    return ways[-1]$rest
""",
        {'part and part[0] != "0" and ': "part and "},
        lambda rng: (word(rng, "0112123", 3, 9),),
        [
            variant(
                ("1123",),
                5,
                f="count_decodings",
                last="Z as 26",
                limit="26",
                start="1",
                rest="",
                empty="1 for no digits (the empty text), 0 if they cannot be read in this way",
            ),
            variant(
                ("1123",),
                3,
                f="count_short_decodings",
                last="L as 12",
                limit="12",
                start="1",
                rest="",
                empty="1 for no digits (the empty text), 0 if they cannot be read in this way",
            ),
        ],
        edges=(("",), ("0",), ("10",), ("100",), ("27",), ("1212",), ("106",)),
    ),
    Family(
        "partitions",
        "Define `$f(n$more)` for a non-negative integer `n`$about: the number of ways to write `n` as a sum of "
        "$parts, where the "
        "order of the summands does not matter. There is one way to write 0, the empty sum.",
        """
def $f(n$more):
    ways = [1] + [0] * n
    for part in $range:
        for total in $totals:
            ways[total] += ways[total - part]
    return ways[n]
""",
        {"in $range": "in $bad"},
        lambda rng: (rng.randint(3, 35),),
        [
            variant(
                (4,),
                5,
                f="count_partitions",
                more="",
                about="",
                parts="positive integers",
                range="range(1, n + 1)",
                bad="range(1, n)",
                totals="range(part, n + 1)",
            ),
            variant(
                (6,),
                4,
                f="count_distinct_partitions",
                more="",
                about="",
                parts="different positive integers",
                range="range(1, n + 1)",
                bad="range(1, n)",
                totals="range(n, part - 1, -1)",
            ),
            variant(
                (6,),
                4,
                f="count_odd_partitions",
                more="",
                about="",
                parts="odd positive integers",
                range="range(1, n + 1, 2)",
                bad="range(3, n + 1, 2)",
                totals="range(part, n + 1)",
            ),
            variant(
                (5, 2),
                3,
                f="count_small_partitions",
                more=", largest",
                about=" and a positive integer `largest`",
                parts="positive integers of at most `largest`",
                range="range(1, largest + 1)",
                bad="range(1, largest)",
                totals="range(part, n + 1)",
                edges=((0, 3), (3, 1), (3, 9), (10, 3)),
                draw=lambda rng: (rng.randint(3, 25), rng.randint(1, 8)),
            ),
        ],
        edges=(),
    ),
    Family(
        "count_strings",
        "Define `$f(n)` for an integer `n` from 0 to 40: the number of texts of `n` characters, each of them "
        "$alphabet, in "
        "which $rule. The empty text counts.",
        """
def $f(n):
    counts = {"": 1}
    for _ in range(n):
        longer = {}
        for end, count in counts.items():
            for letter in "$letters":
                text = end + letter
                if $allowed:
                    longer[text[-2:]] = longer.get(text[-2:], 0) + count
        counts = longer
    return sum(counts.values())
""",
        {"$allowed": "$bad"},
        lambda rng: (rng.randint(3, 30),),
        [
            variant(
                (3,),
                5,
                f="strings_without_11",
                alphabet="0 or 1",
                letters="01",
                allowed='"11" not in text',
                bad='"111" not in text',
                rule="no two ones stand next to each other",
            ),
            variant(
                (3,),
                6,
                f="strings_without_triples",
                alphabet="0 or 1",
                letters="01",
                bad="len(set(text[-2:])) > 1 or text == letter",
                allowed='"000" not in text and "111" not in text',
                rule="no three neighbouring characters are equal",
            ),
            variant(
                (2,),
                7,
                f="strings_without_ab_ba",
                alphabet="a, b or c",
                letters="abc",
                bad='"ab" not in text',
                allowed='"ab" not in text and "ba" not in text',
                rule="a and b never stand next to each other",
            ),
            variant(
                (3,),
                7,
                f="strings_without_101",
                alphabet="0 or 1",
                letters="01",
                bad='"101" not in text and "010" not in text',
                allowed='"101" not in text',
                rule="the sequence 101 does not occur",
            ),
        ],
        edges=((0,), (1,), (2,), (4,), (40,)),
    ),
    Family(
        "trading",
        "`prices` lists the prices of a share on successive days. $rule Define `$f(prices)`: the greatest "
        "possible profit, 0 if "
        "no trade is worthwhile or the list is empty.",
        """
def $f(prices):
    $body
""",
        {"$body": "$bad"},
        lambda rng: (integers(rng, 1, 15, 4, 9),),
        [
            variant(
                ([3, 1, 4, 2, 6],),
                5,
                f="profit_of_one_trade",
                rule="You may buy one share on one day and sell it on a later day, once.",
                bad="return max(prices) - min(prices) if prices else 0",
                body="return max((b - a for i, a in enumerate(prices) for b in prices[i:]), default=0)",
            ),
            variant(
                ([3, 1, 4, 2, 6],),
                7,
                f="profit_of_many_trades",
                rule="You may buy one share and sell it on a later day, any "
                "number of times, but never own more than one share (you may sell and buy again on the same day).",
                body="return sum(max(b - a, 0) for a, b in zip(prices, prices[1:]))",
                bad="return max((b - a for i, a in enumerate(prices) for b in prices[i:]), default=0)",
            ),
            variant(
                ([3, 1, 4, 2, 7],),
                4,
                f="profit_with_fee",
                rule="You may buy one share and sell it on a later day, any "
                "number of times, but never own more than one share; each purchase costs a fee of 2 on top of the "
                "price.",
                body='cash, owning = 0, float("-inf")\n    for price in prices:\n'
                "        cash, owning = max(cash, owning + price), max(owning, cash - price - 2)\n    return cash",
                bad="return sum(max(b - a - 2, 0) for a, b in zip(prices, prices[1:]))",
                edges=(([1, 3, 5],),),
            ),
            variant(
                ([3, 1, 4, 2, 6],),
                5,
                f="profit_with_pause",
                rule="You may buy one share and sell it on a later day, any "
                "number of times, but never own more than one share, and on the day of a sale and the day after it you "
                "must not buy.",
                body='rested, sold, owning = 0, 0, float("-inf")\n    for price in prices:\n'
                "        owning, rested, sold = max(owning, rested - price), max(rested, sold), owning + price\n"
                "    return max(rested, sold, 0)",
                bad="return sum(max(b - a, 0) for a, b in zip(prices, prices[1:]))",
                edges=(([1, 2, 3, 1, 4],),),
            ),
        ],
        edges=(([],), ([5],), ([5, 4, 2],), ([1, 2, 3],)),
        oracle="""
def $f(prices):
    trades = [(i, j) for i in range(len(prices)) for j in range(i + 1, len(prices))]

    def best(first):
        found = [0]
        for i, j in trades:
            if i >= first:
                profit = prices[j] - prices[i] - (2 if "$f" == "profit_with_fee" else 0)
                later = {"profit_of_one_trade": 99, "profit_with_pause": j + 2}.get("$f", j)
                found.append(profit + (best(later) if profit > 0 else 0))
        return max(found)

    return best(0)
""",
    ),
    Family(
        "jumps",
        "You stand on the first entry of `jumps`, a list of non-negative integers; from an entry with the number "
        "k you may go "
        "$reach places to the right, but not past the last entry. Define `$f(jumps)`: $what; for the empty list "
        "it is $none.",
        """
def $f(jumps):
    steps = [0] + [None] * (len(jumps) - 1)
    for i, jump in enumerate(jumps):
        for j in $targets:
            if j < len(jumps) and steps[i] is not None and (steps[j] is None or steps[j] > steps[i] + 1):
                steps[j] = steps[i] + 1
    return $result
""",
        {"$targets": "$bad"},
        lambda rng: ((lambda row: [max(n, rng.choice([0, 1])) for n in row])(integers(rng, 0, 3, 4, 9)),),
        [
            variant(
                ([2, 1, 0, 4],),
                False,
                f="can_reach_end",
                reach="1 to k",
                result="bool(jumps) and steps[-1] is not None",
                targets="range(i + 1, i + jump + 1)",
                bad="range(i, i + jump + 2)",
                none="`False`",
                what="`True` if you can get to the last entry, else `False`",
                edges=(([2, 0, 1],), ([1, 0, 0],)),
            ),
            variant(
                ([2, 3, 1, 1, 4],),
                2,
                f="fewest_jumps",
                reach="1 to k",
                result="steps[-1] if jumps else None",
                targets="range(i + 1, i + jump + 1)",
                bad="range(i + 1, i + jump)",
                none="`None`",
                what="the least number of moves to the last entry, 0 if you already stand there, `None` if it "
                "cannot be "
                "reached",
            ),
            variant(
                ([2, 3, 1, 2, 4],),
                [0, 2, 3],
                f="exact_jump_positions",
                reach="exactly k",
                targets="[i + jump]",
                bad="range(i + 1, i + jump + 1)",
                none="`[]`",
                result="[i for i, count in enumerate(steps) if count is not None] if jumps else []",
                what="the ascending list of the positions (from 0, the first entry included) on which you can stand",
            ),
        ],
        edges=(([],), ([0],), ([0, 1],), ([1, 1],), ([3, 0, 0, 0],)),
    ),
    Family(
        "number_triangle",
        "`rows` is a non-empty list of rows with 1, 2, 3, ... integers. A path starts at the single number of the "
        "first row and "
        "goes from position i of a row to position i or i + 1 of the next, down to the last row. Define "
        "`$f(rows)`: $what.",
        """
def $f(rows):
    best = [$leaf for number in rows[-1]]
    for row in rows[-2::-1]:
        best = [$combine for number, a, b in zip(row, best, best[1:])]
    return best[0]
""",
        {"$combine": "$bad"},
        lambda rng: ([[rng.randint(-4, 9) for _ in range(i)] for i in range(1, rng.randint(3, 6))],),
        [
            variant(
                ([[1], [2, 3], [9, 1, 1]],),
                12,
                f="greatest_triangle_path",
                what="the greatest sum of the numbers on a path",
                leaf="number",
                combine="number + max(a, b)",
                bad="number + a if row.index(number) == 0 else number + b",
            ),
            variant(
                ([[1], [2, 3], [9, 1, 1]],),
                4,
                f="least_triangle_path",
                what="the least sum of the numbers on a path",
                leaf="number",
                combine="number + min(a, b)",
                bad="number + a",
            ),
            variant(
                ([[1], [2, 3], [9, 1, 1]],),
                1,
                f="best_triangle_minimum",
                leaf="number",
                combine="min(number, max(a, b))",
                what="the greatest number m such that some path has no number less than m",
                bad="min(number, a, b)",
            ),
        ],
        edges=(([[5]],), ([[-1], [-2, -3]],), ([[1], [4, 2], [0, 0, 9]],)),
    ),
    Family(
        "scheduling",
        "`jobs` is a list of tuples (start, end, pay) of integers with start < end and positive pay. Two jobs can "
        "both be done "
        "if $rule. Define `$f(jobs)`: $what, 0 for no jobs.",
        """
def $f(jobs):
    ordered = sorted(jobs, key=lambda job: job[1])
    best = [0]
    for start, _, pay in ordered:
        earlier = max(count for count in range(len(best)) if count == 0 or ordered[count - 1][1] $compare start)
        best.append(max(best[-1], best[earlier] + $gain))
    return best[-1]
""",
        {"[1] $compare start": "[1] $bad start"},
        lambda rng: ([(a, a + rng.randint(1, 5), rng.randint(1, 9)) for a in integers(rng, 0, 9, 2, 6)],),
        [
            variant(
                ([(1, 3, 5), (3, 4, 2), (2, 6, 6)],),
                7,
                f="best_pay",
                compare="<=",
                bad="<",
                gain="pay",
                rule="one ends before the other starts or exactly when it starts",
                what="the greatest total pay of jobs of which every two can be done",
                edges=(([(0, 1, 3), (1, 2, 3)],),),
            ),
            variant(
                ([(1, 3, 5), (3, 4, 2), (2, 6, 6)],),
                6,
                f="best_pay_with_break",
                compare="<",
                bad="<=",
                gain="pay",
                rule="one ends strictly before the other starts",
                what="the greatest total pay of jobs of which every two can be done",
                edges=(([(0, 1, 3), (1, 2, 3)],),),
            ),
            variant(
                ([(1, 3, 5), (3, 4, 2), (2, 6, 9)],),
                2,
                f="most_jobs",
                compare="<=",
                bad="<",
                gain="1",
                rule="one ends before the other starts or exactly when it starts",
                what="the greatest number of jobs of which every two can be done, whatever they pay",
                edges=(([(0, 1, 3), (1, 2, 3)],),),
            ),
        ],
        edges=(([],), ([(0, 5, 4)],), ([(0, 9, 5), (1, 2, 3), (4, 5, 3)],)),
        oracle="""
from itertools import combinations


def $f(jobs):
    sets = [c for size in range(len(jobs) + 1) for c in combinations(jobs, size)]
    fits = [c for c in sets if all(a[1] $compare b[0] or b[1] $compare a[0] for a, b in combinations(c, 2))]
    return max(sum($gain for _, _, pay in c) for c in fits)
""",
    ),
    Family(
        "games",
        "$game Both players play as well as possible. Define `$f($arguments)`: $what.",
        """
def $f($arguments):
    $body
""",
        {"$body": "$bad"},
        lambda rng: (rng.randint(1, 60),),
        [
            variant(
                (6,),
                True,
                f="first_wins_stones",
                arguments="count",
                what="`True` if the player who moves first wins, else `False`",
                game="There are `count` stones (at least 0). Two players in turn take 1, 3 or 4 of them; whoever "
                "cannot move loses.",
                body="wins = []\n    for stones in range(count + 1):\n"
                "        wins.append(any(not wins[stones - take] for take in (1, 3, 4) if take <= stones))\n"
                "    return wins[count]",
                bad="return count % 4 != 0",
                edges=((0,), (1,), (2,), (7,), (9,)),
            ),
            variant(
                ([3, 9, 1],),
                4,
                f="pick_from_ends",
                arguments="coins",
                what="the total of the player who moves first, who "
                "wants to get as much as possible, as does the other; 0 if there are no coins",
                game="The positive integers in the list `coins` lie in a row. Two players in turn take the first "
                "or the "
                "last coin that is left, until none is.",
                body="size = len(coins)\n    best = {(i, i): 0 for i in range(size + 1)}\n"
                "    for width in range(1, size + 1):\n        for i in range(size - width + 1):\n"
                "            j = i + width\n"
                "            best[i, j] = sum(coins[i:j]) - min(best[i + 1, j], best[i, j - 1])\n"
                "    return best[0, size]",
                bad="return max(sum(coins[::2]), sum(coins[1::2]))",
                edges=(([],), ([4],), ([1, 5],)),
                draw=lambda rng: (integers(rng, 1, 12, 3, 8),),
            ),
            variant(
                (4, 2),
                False,
                f="first_wins_two_heaps",
                arguments="a, b",
                what="`True` if the player who moves first wins, else `False`",
                game="There are two heaps of `a` and `b` stones (at least 0 each). Two players in turn take "
                "one stone from one heap or one stone from each heap; whoever cannot move loses.",
                body="wins = {}\n    for i in range(a + 1):\n        for j in range(b + 1):\n"
                "            moves = ((i - 1, j), (i, j - 1), (i - 1, j - 1))\n"
                "            wins[i, j] = any(not wins[move] for move in moves if move in wins)\n    return wins[a, b]",
                bad="return a != b",
                edges=((0, 0), (1, 0), (1, 1), (2, 2)),
                draw=lambda rng: (rng.randint(0, 12), rng.randint(0, 12)),
            ),
        ],
    ),
    Family(
        "fewest_parts",
        "Define `$f(n)` for a non-negative integer `n`: $what.",
        """
def $f(n):
    best = [0]
    for total in range(1, n + 1):
        best.append(min(1 + best[before] for before in $before))
    return best[n]
""",
        {"$before": "$bad"},
        lambda rng: (rng.randint(5, 150),),
        [
            variant(
                (12,),
                3,
                f="fewest_squares",
                what="the least number of positive square numbers (1, 4, 9, ...), repetitions "
                "allowed, whose sum is `n`; 0 for 0",
                before="[total - i * i for i in range(1, total + 1) if i * i <= total]",
                bad="[total - max(i * i for i in range(1, total + 1) if i * i <= total)]",
                edges=((18,),),
            ),
            variant(
                (9,),
                5,
                f="fewest_steps_from_zero",
                what="the least number of steps that lead from 0 to `n`, where a step adds 1 or doubles the number",
                bad="[total // 2 if total > 1 else 0]",
                before="[total - 1] + ([total // 2] if total % 2 == 0 else [])",
            ),
            variant(
                (10,),
                4,
                f="fewest_steps_down",
                what="the least number of steps that lead from `n` to 0, where a step "
                "subtracts 1, or halves an even number, or divides a number divisible by 3 by 3",
                bad="[total // 3 if total % 3 == 0 else total // 2 if total % 2 == 0 else total - 1]",
                before="[total - 1] + [total // k for k in (2, 3) if total % k == 0]",
                edges=((28,),),
            ),
        ],
        edges=((0,), (1,), (2,), (7,), (23,), (100,)),
    ),
    Family(
        "dice",
        "Define `$f(count, sides, $third)`: the number of ways in which `count` different dice (at least 0), each "
        "with the "
        "numbers 1 to `sides`, can $what. No dice have the sum 0.",
        """
def $f(count, sides, $third):
    ways = {0: 1}
    for _ in range(count):
        longer = {}
        for total, number in ways.items():
            for face in range(1, sides + 1):
                longer[total + face] = longer.get(total + face, 0) + number
        ways = longer
    return sum(number for total, number in ways.items() if $test)
""",
        {"$test": "$bad"},
        lambda rng: (rng.randint(1, 4), rng.randint(2, 8), rng.randint(3, 15)),
        [
            variant(
                (2, 6, 7),
                6,
                f="ways_to_roll",
                third="total_wanted",
                what="fall so that their sum is exactly `total_wanted`",
                test="total == total_wanted",
                bad="total <= total_wanted",
            ),
            variant(
                (2, 6, 10),
                6,
                f="ways_to_reach",
                third="least",
                what="fall so that their sum is at least `least`",
                test="total >= least",
                bad="total > least",
            ),
            variant(
                (2, 6, 5),
                7,
                f="ways_to_divide",
                third="divisor",
                what="fall so that their sum is divisible by the positive integer `divisor`",
                test="total % divisor == 0",
                bad="total % divisor == 1",
            ),
        ],
        edges=((0, 6, 1), (1, 6, 6), (1, 6, 7), (3, 2, 4)),
        oracle="""
from itertools import product


def $f(count, sides, $third):
    sums = [sum(faces) for faces in product(range(1, sides + 1), repeat=count)]
    return len([total for total in sums if $test])
""",
    ),
    Family(
        "blocks_of_ones",
        "`grid` is a list of rows of equal length, of the integers 0 and 1. Define `$f(grid)`: $what, 0 if there "
        "is none.",
        """
def $f(grid):
    sizes = {}
    for i, row in enumerate(grid):
        for j, cell in enumerate(row):
            near = [sizes.get(place, 0) for place in ((i - 1, j), (i, j - 1), (i - 1, j - 1))]
            sizes[i, j] = 1 + min(near) if cell == $wanted else 0
    return $result
""",
        {"$result": "$bad"},
        lambda rng: (blocked(rng, rng.randint(2, 4), rng.randint(2, 5), 0.75),),
        [
            variant(
                ([[1, 1], [1, 1], [0, 1]],),
                4,
                f="largest_square_area",
                wanted="1",
                bad="max(sizes.values(), default=0)",
                result="max(sizes.values(), default=0) ** 2",
                what="the area (number of cells) of the largest square of neighbouring cells that all hold 1",
            ),
            variant(
                ([[1, 1], [1, 1], [0, 1]],),
                6,
                f="count_squares",
                wanted="1",
                result="sum(sizes.values())",
                bad="sum(size > 0 for size in sizes.values())",
                what="the number of squares, of any size from 1 by 1, of neighbouring cells that all hold 1",
            ),
            variant(
                ([[0, 0], [0, 0], [1, 0]],),
                2,
                f="largest_zero_square_side",
                wanted="0",
                result="max(sizes.values(), default=0)",
                bad="max(sizes.values(), default=0) ** 2",
                what="the side length of the largest square of neighbouring cells that all hold 0",
                edges=(([[0, 0, 0], [0, 0, 0], [0, 0, 0]],),),
                draw=lambda rng: (blocked(rng, rng.randint(2, 4), rng.randint(2, 5), 0.2),),
            ),
        ],
        edges=(([],), ([[0]],), ([[1]],), ([[1, 1, 1], [1, 1, 1], [1, 1, 1]],), ([[0, 0], [0, 1]],)),
    ),
    Family(
        "count_subsequences",
        "Define `$f(text$more)`: $what.",
        """
def $f(text$more):
    $body
""",
        {"$body": "$bad"},
        lambda rng: (word(rng, "abc", 3, 8),),
        [
            variant(
                ("abab", "ab"),
                3,
                f="ways_to_pick",
                more=", part",
                what="in how many ways characters of `text` can be struck "
                "out so that `part` remains, where striking out different positions counts as different; one way "
                "if `part` "
                "is empty",
                body="ways = [1] + [0] * len(part)\n    for letter in text:\n"
                "        for i in range(len(part), 0, -1):\n            if part[i - 1] == letter:\n"
                "                ways[i] += ways[i - 1]\n    return ways[-1]",
                bad="ways = [1] + [0] * len(part)\n    for letter in text:\n"
                "        for i in range(1, len(part) + 1):\n            if part[i - 1] == letter:\n"
                "                ways[i] += ways[i - 1]\n    return ways[-1]",
                edges=(("", ""), ("", "a"), ("abc", ""), ("aaa", "aa"), ("ab", "ba")),
                draw=lambda rng: (word(rng, "ab", 4, 10), word(rng, "ab", 1, 3)),
            ),
            variant(
                ("aba",),
                7,
                f="count_different_subsequences",
                more="",
                what="the number of different texts that remain when "
                "any (or none, or all) of the characters of `text` are struck out, the empty text included",
                body='found = {""}\n    for letter in text:\n        found |= {part + letter for part in found}\n'
                "    return len(found)",
                bad="return 2 ** len(text)",
                edges=(("",), ("aa",), ("ab",), ("aaa",)),
            ),
            variant(
                ("acbd", "ab", "cd"),
                True,
                f="is_interleaving",
                more=", first, second",
                edges=(("", "", ""), ("a", "a", ""), ("ab", "b", "a"), ("ba", "ab", ""), ("aab", "ab", "b")),
                what="`True` if `text` can be made by merging the texts `first` and `second`, using up all "
                "characters of "
                "both, those of each in their order, else `False`",
                body="reachable = {(0, 0)}\n    for letter in text:\n        after = set()\n        for i, j in "
                "reachable:\n"
                "            if first[i : i + 1] == letter:\n                after.add((i + 1, j))\n"
                "            if second[j : j + 1] == letter:\n                after.add((i, j + 1))\n"
                "        reachable = after\n    return (len(first), len(second)) in reachable",
                bad="return sorted(text) == sorted(first + second)",
                draw=lambda rng: (lambda a, b: ((a + b if rng.random() < 0.5 else "".join(sorted(a + b))), a, b))(
                    word(rng, "ab", 1, 4), word(rng, "ab", 1, 4)
                ),
            ),
        ],
    ),
    Family(
        "stepping_costs",
        "The input has one line of non-negative integers separated by spaces (at least one), the costs of "
        "stepping on stones 1, "
        "2, ..., n in a row. You start on the bank before stone 1, each move goes $moves stones ahead, and you "
        "want to reach "
        "$goal. Write a program that prints the least total cost of the stones stepped on.",
        """
costs = list(map(int, input().split()))$extra
best = [0]
for i, cost in enumerate(costs, 1):
    best.append(cost + min(best[max(0, i - $reach) : i]))
print(best[-1])
""",
        {"$extra": "$bad_extra", "i - $reach": "i - $bad"},
        lambda rng: lines(integers(rng, 0, 12, 2, 8)),
        [
            variant(
                "5 1 9 2\n",
                "3",
                moves="1 or 2",
                goal="stone n",
                extra="",
                bad_extra="",
                reach="2",
                bad="3",
                edges=("7\n", "4 4\n"),
            ),
            variant(
                "5 1 9 2\n",
                "1",
                moves="1, 2 or 3",
                goal="the other bank, which lies one place behind stone n",
                extra=" + [0]",
                bad_extra="",
                reach="3",
                bad="3",
                edges=("7\n", "4 4 4\n"),
            ),
            variant(
                "5 1 9 2\n",
                "3",
                moves="1 or 2",
                goal="the other bank, which lies one place behind stone n",
                extra=" + [0]",
                bad_extra=" + [0]",
                reach="2",
                bad="3",
                edges=("7\n", "3 3 3\n"),
            ),
        ],
        stdio=True,
    ),
    Family(
        "shop",
        "The first line of the input has two integers n (at least 1) and budget (at least 0), separated by a "
        "space; n lines "
        "follow, each with the price (at least 1) and the value (at least 1) of a thing, separated by a space. "
        "$supply Write a "
        "program that prints $what.",
        """
count, budget = map(int, input().split())
best = [0] * (budget + 1)
for _ in range(count):
    price, value = map(int, input().split())
    for money in $order:
        best[money] = max(best[money], best[money - price] + $gain)
print($result)
""",
        {"$order": "$bad"},
        lambda rng: (lambda rows: lines((len(rows), rng.randint(4, 15)), *rows))(
            [(rng.randint(1, 7), rng.randint(1, 12)) for _ in range(rng.randint(2, 5))]
        ),
        [
            variant(
                "2 4\n2 3\n3 4\n",
                "4",
                supply="Each thing can be bought once.",
                order="range(budget, price - 1, -1)",
                bad="range(price, budget + 1)",
                gain="value",
                result="best[budget]",
                what="the greatest total value of things whose total price is at most the budget",
            ),
            variant(
                "2 4\n2 3\n3 4\n",
                "6",
                supply="Each thing can be bought any number of times.",
                gain="value",
                order="range(price, budget + 1)",
                bad="range(budget, price - 1, -1)",
                result="best[budget]",
                what="the greatest total value of things whose total price is at most the budget",
            ),
            variant(
                "2 4\n2 3\n3 4\n",
                "1",
                supply="Each thing can be bought once.",
                gain="price",
                order="range(budget, price - 1, -1)",
                bad="range(price, budget + 1)",
                result="budget - best[budget]",
                what="the least amount of money that can remain of the budget after buying things (values do not "
                "matter "
                "here)",
            ),
        ],
        edges=("1 3\n4 9\n", "1 8\n4 9\n"),
        stdio=True,
    ),
]
