"""Tasks about numbers: digits, divisors, sequences, bits, dates and money."""

from .common import Family, integers, lines, variant

FAMILIES = [
    Family(
        "sum_multiples",
        "Define `$f(n)`: the sum of the positive integers $range that are $what, 0 if there are none. "
        "`n` is an integer, possibly negative.",
        """
def $f(n):
    return sum(i for i in range(1, $end) if $condition)
""",
        {"$end": "$bad"},
        lambda rng: (rng.randint(5, 120),),
        [
            variant(
                (10,),
                23,
                f="sum_of_3_or_5",
                range="below `n`",
                end="n",
                bad="n + 1",
                what="divisible by 3 or by 5",
                condition="i % 3 == 0 or i % 5 == 0",
            ),
            variant(
                (12,),
                30,
                f="sum_of_4_or_6",
                range="up to and including `n`",
                end="n + 1",
                bad="n",
                what="divisible by 4 or by 6 (those divisible by both count once)",
                condition="i % 4 == 0 or i % 6 == 0",
            ),
            variant(
                (21,),
                28,
                f="sum_of_odd_7",
                range="up to and including `n`",
                end="n + 1",
                bad="n",
                what="divisible by 7 but not by 2",
                condition="i % 7 == 0 and i % 2 != 0",
            ),
            variant(
                (13,),
                30,
                f="sum_of_3_or_4_not_both",
                range="below `n`",
                end="n",
                bad="n + 1",
                what="divisible by 3 or by 4 but not by both",
                condition="(i % 3 == 0) != (i % 4 == 0)",
            ),
        ],
        edges=((0,), (-5,), (1,), (28,), (15,)),
    ),
    Family(
        "digits",
        "Define `$f(n)`: $what of the decimal digits of the non-negative integer `n`.",
        """
def $f(n):
    digits = [int(digit) for digit in str(n)]
    return $result
""",
        {"$result": "$bad"},
        lambda rng: (rng.randint(10, 10 ** rng.randint(2, 7)),),
        [
            variant((507,), 12, f="digit_sum", what="the sum", result="sum(digits)", bad="sum(set(digits))"),
            variant(
                (5073,),
                9,
                f="alternating_digit_sum",
                what="the alternating sum (the first minus the second plus the third and so on, from the left)",
                result="sum(digits[::2]) - sum(digits[1::2])",
                bad="sum(digits[::-2]) - sum(digits[-2::-2])",
            ),
            variant(
                (5073,),
                7,
                f="digit_spread",
                what="the largest minus the smallest",
                result="max(digits) - min(digits)",
                bad="abs(digits[0] - digits[-1])",
            ),
            variant(
                (50733,),
                4,
                f="count_distinct_digits",
                what="the number of different values",
                result="len(set(digits))",
                bad="len(digits)",
            ),
        ],
        edges=((0,), (7,), (10,), (1000,), (999,)),
    ),
    Family(
        "digit_chain",
        "Start with the positive integer `n` and repeatedly replace the number by the $step of its decimal digits. "
        "Define `$f(n)`: $what.",
        """
$head
def $f(n):
    seen = []
    while n $going:
        seen.append(n)
        n = $next
    return $result
""",
        {"$result": "$bad"},
        lambda rng: (rng.randint(1, 9999),),
        [
            variant(
                (95,),
                5,
                f="digital_root",
                head="",
                step="sum",
                going="> 9",
                result="n",
                bad="n % 9",
                next="sum(int(digit) for digit in str(n))",
                what="the first number below 10 that is reached, `n` itself if it is below 10",
            ),
            variant(
                (39,),
                3,
                f="multiplicative_persistence",
                head="from math import prod\n\n",
                step="product",
                going="> 9",
                result="len(seen)",
                bad="max(len(seen), 1)",
                next="prod(map(int, str(n)))",
                what="how many replacements it takes until the number is below 10, 0 if it is from the start",
            ),
            variant(
                (19,),
                True,
                f="is_happy",
                head="",
                step="sum of the squares",
                going="not in seen",
                result="n == 1",
                bad="len(seen) < 5",
                next="sum(int(digit) ** 2 for digit in str(n))",
                what="`True` if the number 1 is ever reached, else `False`",
                edges=((4,), (2,), (7,)),
            ),
        ],
        edges=((1,), (9,), (10,), (99,), (999,)),
    ),
    Family(
        "common_divisors",
        "`numbers` is a non-empty list of positive integers. Define `$f(numbers)`: $what.",
        """
from math import gcd


def $f(numbers):
    $body
""",
        {"$body": "$bad"},
        lambda rng: (
            (lambda factor: [factor * rng.randint(1, 12) for _ in range(rng.randint(1, 5))])(rng.randint(1, 6)),
        ),
        [
            variant(
                ([12, 18, 30],),
                6,
                f="greatest_common_divisor",
                body="return gcd(*numbers)",
                bad="return gcd(numbers[0], numbers[-1])",
                what="the greatest integer that divides all of them",
            ),
            variant(
                ([4, 6, 10],),
                60,
                f="least_common_multiple",
                body="result = 1\n    for number in numbers:\n"
                "        result = result * number // gcd(result, number)\n    return result",
                bad="result = 1\n    for number in numbers:\n        result = result * number\n"
                "    return result // gcd(*numbers)",
                what="the least positive integer that all of them divide",
            ),
            variant(
                ([4, 6, 9],),
                1,
                f="count_coprime_pairs",
                body="return sum(gcd(a, b) == 1 for i, a in enumerate(numbers) for b in numbers[:i])",
                bad="return sum(gcd(a, b) == 1 for a, b in zip(numbers, numbers[1:]))",
                what="the number of pairs of positions i < j whose two numbers have no common divisor but 1",
                edges=(([3, 5, 7],), ([2, 1, 2],)),
            ),
        ],
        edges=(([7],), ([1, 1],), ([5, 5],), ([2, 3, 4],)),
    ),
    Family(
        "primes",
        "Define `$f(low, high)`: $what from `low` to `high`, both included. $none `low` may be negative, and it may be "
        "greater than `high`. (A prime is an integer above 1 that only 1 and itself divide.)",
        """
def $f(low, high):
    primes = [n for n in range(max(low, 2), high + 1) if all(n % i for i in range(2, int(n**0.5) + 1))]
    return $result
""",
        {"int(n**0.5) + 1": "int(n**0.5)"},
        lambda rng: (rng.randint(-5, 60), rng.randint(5, 150)),
        [
            variant(
                (10, 20),
                [11, 13, 17, 19],
                f="list_primes",
                what="the ascending list of the primes",
                result="primes",
                none="If there are none, it is `[]`.",
            ),
            variant(
                (3, 11),
                4,
                f="count_primes",
                what="the number of primes",
                result="len(primes)",
                none="If there are none, it is 0.",
            ),
            variant(
                (3, 12),
                11,
                f="largest_prime",
                what="the largest prime",
                result="max(primes, default=None)",
                none="If there is none, it is `None`.",
                edges=((24, 25), (2, 4), (8, 9), (32, 36)),
            ),
            variant(
                (2, 10),
                2,
                f="widest_prime_gap",
                none="If there are fewer than two primes, it is 0.",
                result="max((b - a for a, b in zip(primes, primes[1:])), default=0)",
                what="the greatest difference between two successive primes among the integers",
            ),
        ],
        edges=((1, 2), (9, 9), (25, 25), (20, 10), (-3, 4)),
    ),
    Family(
        "prime_factors",
        "Define `$f(n)` for a positive integer `n`: $what. (1 has no prime factors.)",
        """
def $f(n):
    factors = []
    divisor = 2
    while divisor * divisor <= n:
        while n % divisor == 0:
            factors.append(divisor)
            n //= divisor
        divisor += 1
    if n > 1:
        factors.append(n)
    return $result
""",
        {"    if n > 1:\n        factors.append(n)\n": ""},
        lambda rng: (rng.randint(2, 5000),),
        [
            variant(
                (60,),
                [2, 2, 3, 5],
                f="factorize",
                result="factors",
                what="the ascending list of its prime factors, each as often as it divides `n`; `[]` for 1",
            ),
            variant(
                (60,),
                [2, 3, 5],
                f="distinct_prime_factors",
                result="sorted(set(factors))",
                what="the ascending list of its different prime factors; `[]` for 1",
            ),
            variant(
                (60,),
                4,
                f="count_prime_factors",
                result="len(factors)",
                what="how many prime factors it has, counted as often as they divide `n`; 0 for 1",
            ),
            variant(
                (60,),
                [(2, 2), (3, 1), (5, 1)],
                f="prime_powers",
                result="[(prime, factors.count(prime)) for prime in sorted(set(factors))]",
                what="the list of tuples (prime, exponent), ascending by prime, whose powers multiply to `n`; "
                "`[]` for 1",
            ),
        ],
        edges=((1,), (2,), (49,), (97,), (1024,)),
    ),
    Family(
        "divisors",
        "Define `$f(n)` for a positive integer `n`: $what.",
        """
def $f(n):
    divisors = [i for i in range(1, n + 1) if n % i == 0]
    return $result
""",
        {"$result": "$bad"},
        lambda rng: (rng.randint(2, 300),),
        [
            variant(
                (12,),
                [1, 2, 3, 4, 6, 12],
                f="list_divisors",
                what="the ascending list of its positive divisors, 1 and `n` included",
                result="divisors",
                bad="sorted(divisors[: len(divisors) // 2] + [n // i for i in divisors[: len(divisors) // 2]])",
            ),
            variant(
                (12,),
                16,
                f="sum_proper_divisors",
                what="the sum of its positive divisors other than `n` itself",
                result="sum(divisors[:-1])",
                bad="sum(divisors[1:-1]) + 1",
            ),
            variant(
                (12,),
                "abundant",
                f="classify_by_divisors",
                edges=((28,), (496,), (8,)),
                what='`"perfect"`, `"abundant"` or `"deficient"` as the sum of its positive divisors other than `n` is '
                "equal to, greater than or less than `n`",
                result='["deficient", "perfect", "abundant"][(sum(divisors) >= 2 * n) + (sum(divisors) > 2 * n)]',
                bad='["deficient", "abundant"][sum(divisors) >= 2 * n]',
            ),
            variant(
                (12,),
                (3, 4),
                f="closest_divisors",
                what="the tuple (a, b) with a * b == `n` and a <= b whose difference b - a is least",
                bad="(divisors[len(divisors) // 2 - 1], divisors[len(divisors) // 2])",
                result="(divisors[(len(divisors) - 1) // 2], divisors[len(divisors) // 2])",
            ),
        ],
        edges=((1,), (6,), (7,), (36,), (16,)),
    ),
    Family(
        "to_base",
        "Define `$f(n$extra)`: the non-negative integer `n` written in base $base, as a text without leading zeros "
        '(0 is `"0"`). $digits',
        """
def $f(n$extra):
    result = ""
    while n $going:
        n, digit = divmod(n, $divisor)
        result = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + result
    return result or "0"
""",
        {"n $going": "n >= $divisor", 'result or "0"': "result or str(n)"},
        lambda rng: (rng.randint(1, 5000),),
        [
            variant(
                (5,),
                "12",
                f="to_base_3",
                extra="",
                base="3",
                divisor="3",
                going="> 0",
                digits="",
                edges=((0,), (1,), (3,), (27,)),
            ),
            variant(
                (100,),
                "79",
                f="to_base_13",
                extra="",
                base="13",
                divisor="13",
                going="> 0",
                digits="The digits from ten on are a, b and c.",
                edges=((0,), (12,), (13,), (1000,)),
            ),
            variant(
                (31, 16),
                "1f",
                f="to_any_base",
                extra=", base",
                base="`base` (from 2 to 36)",
                divisor="base",
                going="> 0",
                digits="The digits from ten on are a, b, c and so on.",
                draw=lambda rng: (rng.randint(1, 5000), rng.randint(2, 36)),
                edges=((0, 2), (35, 36), (8, 2)),
            ),
        ],
    ),
    Family(
        "from_base",
        "Define `$f(text)`: the integer that `text` means when read as $what.",
        """
def $f(text):
    result = 0
    for $item in $items:
        result = $step
    return result
""",
        {"$step": "$bad"},
        lambda rng: (str(rng.randint(1, 2)) + "".join(rng.choice("012") for _ in range(rng.randint(1, 6))),),
        [
            variant(
                ("102",),
                11,
                f="from_base_3",
                what="digits 0, 1 and 2 in base 3, the first digit counting most",
                item="digit",
                items="text",
                step="result * 3 + int(digit)",
                bad="(result + int(digit)) * 3",
                edges=(("0",), ("2",), ("0010",)),
            ),
            variant(
                ("1001",),
                -7,
                f="from_twos_complement",
                items="enumerate(text)",
                item="i, bit",
                what='a binary number in two\'s complement: the first of its bits counts negatively, so that `"1011"` '
                "would be -8 + 2 + 1",
                step="result * 2 + (-int(bit) if i == 0 else int(bit))",
                bad="result * 2 + int(bit)",
                edges=(("0",), ("1",), ("1111",), ("0111",)),
                draw=lambda rng: ("".join(rng.choice("01") for _ in range(rng.randint(3, 9))),),
            ),
            variant(
                ("110",),
                2,
                f="from_negabinary",
                items="text",
                item="bit",
                step="result * -2 + int(bit)",
                bad="result * 2 + int(bit)",
                edges=(("0",), ("1",), ("10",), ("11",)),
                what="bits in base -2: the last one counts 1, the one before -2, the one before that 4, then -8 "
                "and so on",
                draw=lambda rng: ("".join(rng.choice("01") for _ in range(rng.randint(3, 9))),),
            ),
        ],
    ),
    Family(
        "recurrence",
        "A sequence starts with $start; every later term is $rule. Define `$f(n)`: $what, where `n` is from "
        "$least to 60.",
        """
def $f(n):
    terms = [$start]
    while len(terms) <= n:
        terms.append($next)
    return $result
""",
        {"$result": "$bad"},
        lambda rng: (rng.randint(3, 40),),
        [
            variant(
                (6,),
                8,
                f="fibonacci",
                start="0, 1",
                rule="the sum of the two before it",
                least="0",
                result="terms[n]",
                next="terms[-1] + terms[-2]",
                bad="terms[n - 1]",
                what="its term number `n`, counted from 0",
                edges=((0,), (2,)),
            ),
            variant(
                (5,),
                4,
                f="tribonacci",
                start="0, 0, 1",
                rule="the sum of the three before it",
                least="0",
                next="sum(terms[-3:])",
                result="terms[n]",
                bad="terms[n - 1]",
                what="its term number `n`, counted from 0",
                edges=((0,), (2,)),
            ),
            variant(
                (5,),
                17,
                f="lucas_sum",
                start="2, 1",
                rule="the sum of the two before it",
                least="1",
                next="terms[-1] + terms[-2]",
                result="sum(terms[:n])",
                bad="sum(terms[: max(n, 2)])",
                what="the sum of its first `n` terms",
                edges=((2,),),
            ),
            variant(
                (5,),
                11,
                f="jacobsthal",
                start="0, 1",
                rule="the one before it plus twice the one before that",
                least="0",
                next="terms[-1] + 2 * terms[-2]",
                result="terms[n]",
                bad="terms[n - 1]",
                what="its term number `n`, counted from 0",
                edges=((0,), (2,)),
            ),
        ],
        edges=((1,), (10,), (60,)),
    ),
    Family(
        "collatz",
        "Start with the positive integer `n`. $rule Stop at 1. Define `$f(n)`: $what.",
        """
def $f(n):
    chain = [n]
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        chain.append(n)
    return $result
""",
        {"$result": "$bad"},
        lambda rng: (rng.randint(2, 120),),
        [
            variant(
                (6,),
                8,
                f="collatz_steps",
                what="the number of steps until 1 is reached, 0 for 1",
                result="len(chain) - 1",
                bad="len(chain) - (len(chain) > 9)",
                rule="An even number is halved, an odd one is tripled and increased by 1.",
            ),
            variant(
                (3,),
                16,
                f="collatz_peak",
                what="the greatest number on the way, `n` and 1 included",
                result="max(chain)",
                bad="max(chain[1:] or [1])",
                rule="An even number is halved, an odd one is tripled and increased by 1.",
            ),
            variant(
                (3,),
                2,
                f="collatz_odd_steps",
                what="how many odd numbers greater than 1 occur on the way, `n` included",
                result="sum(number % 2 for number in chain[:-1])",
                bad="sum(number % 2 for number in chain[1:])",
                rule="An even number is halved, an odd one is tripled and increased by 1.",
            ),
        ],
        edges=((1,), (2,), (27,), (8,)),
    ),
    Family(
        "integer_root",
        "Define `$f(n)` for a non-negative integer `n`, possibly greater than 10**20: $what.",
        """
def $f(n):
    low, high = 0, n + 1
    while high - low > 1:
        middle = (low + high) // 2
        if middle**$power <= n:
            low = middle
        else:
            high = middle
    return $result
""",
        {"$result": "$bad"},
        lambda rng: (
            rng.choice(
                [
                    rng.randint(2, 400),
                    rng.randint(2, 30) ** 2,
                    rng.randint(2, 9) ** 3,
                    rng.randint(10**8, 10**9) ** 2 + rng.randint(-1, 1),
                ]
            ),
        ),
        [
            variant(
                (10,),
                3,
                f="floor_square_root",
                power="2",
                what="the greatest integer whose square is at most `n`",
                result="low",
                bad="int(n**0.5)",
                edges=(((10**15 + 1) ** 2 - 1,),),
            ),
            variant(
                (10,),
                4,
                f="ceiling_square_root",
                power="2",
                what="the least non-negative integer whose square is at least `n`",
                result="low + (low**2 < n)",
                bad="low + 1",
            ),
            variant(
                (30,),
                3,
                f="floor_cube_root",
                power="3",
                what="the greatest integer whose cube is at most `n`",
                result="low",
                bad="int(n ** (1 / 3))",
                edges=((64,), (125,)),
            ),
            variant(
                (12,),
                3,
                f="nearest_square_root",
                power="2",
                what="the non-negative integer whose square is nearest to `n` (two are never equally near)",
                bad="low",
                result="low + ((low + 1) ** 2 - n < n - low**2)",
            ),
        ],
        edges=((0,), (1,), (4,), (27,), (26,)),
    ),
    Family(
        "fractions",
        "A fraction is a tuple (numerator, denominator) of integers; arguments have denominators other than 0, maybe "
        "negative ones. Define `$f(first, second)`: $what, in lowest terms and with a positive denominator; zero "
        "is `(0, 1)`.",
        """
from math import gcd


def $f(first, second):
    (a, b), (c, d) = first, second
    numerator, denominator = $result
    divisor = gcd(numerator, denominator)
    if denominator < 0:
        divisor = -divisor
    return (numerator // divisor, denominator // divisor)
""",
        {"    if denominator < 0:\n        divisor = -divisor\n": ""},
        lambda rng: tuple((rng.randint(-12, 12), rng.choice([-6, -4, -3, 2, 3, 4, 6, 9])) for _ in range(2)),
        [
            variant(((1, 6), (1, -2)), (-1, 3), f="add_fractions", what="their sum", result="a * d + c * b, b * d"),
            variant(
                ((1, 6), (1, 2)),
                (-1, 3),
                f="subtract_fractions",
                what="the first minus the second",
                result="a * d - c * b, b * d",
            ),
            variant(((2, 3), (3, -4)), (-1, 2), f="multiply_fractions", what="their product", result="a * c, b * d"),
            variant(
                ((2, 6), (1, 2)),
                (5, 12),
                f="mean_of_fractions",
                what="their arithmetic mean",
                result="a * d + c * b, 2 * b * d",
            ),
        ],
        edges=(((0, 5), (0, -3)), ((1, 2), (1, 2)), ((-1, -2), (1, 2)), ((5, 1), (4, 8))),
    ),
    Family(
        "decimal_expansion",
        "The fraction 1 / `n` of a positive integer `n` is written as a decimal number, as in 1/110 = 0.00909... "
        "Define `$f(n)`: $what.",
        """
def $f(n):
    remainders, remainder = [], 1 % n
    while remainder and remainder not in remainders:
        remainders.append(remainder)
        remainder = remainder * 10 % n
    start = remainders.index(remainder) if remainder else len(remainders)
    return $result
""",
        {"$result": "$bad"},
        lambda rng: (rng.randint(2, 90),),
        [
            variant(
                (12,),
                1,
                f="repetend_length",
                what="the length of the shortest block of digits that repeats without end, 0 if the expansion ends",
                result="len(remainders) - start",
                bad="len(remainders)",
            ),
            variant(
                (12,),
                2,
                f="digits_before_repetend",
                result="start",
                bad="start * bool(remainder)",
                what="the number of digits after the point and before the block that repeats without end; if the "
                "expansion ends, the number of all digits after the point (0 for 1)",
            ),
            variant(
                (12,),
                [0, 8, 3],
                f="decimal_digits",
                edges=((8,), (7,)),
                what="the list of the digits after the point up to the end of the first occurrence of the "
                "shortest block "
                "that repeats without end, or all of them if the expansion ends (`[]` for 1)",
                result="[remainder * 10 // n for remainder in remainders]",
                bad="[remainder * 10 // n for remainder in remainders[:start]] or [1 // n]",
            ),
        ],
        edges=((1,), (2,), (3,), (6,), (28,)),
    ),
    Family(
        "roman",
        "Roman numerals use I, V, X, L, C, D and M for 1, 5, 10, 50, 100, 500 and 1000, with IV, IX, XL, XC, CD "
        "and CM for "
        "4, 9, 40, 90, 400 and 900. Define `$f($argument)`: $what.",
        """
PARTS = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"),
         (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]


def $f($argument):
    result = $start
    for value, part in PARTS:
        $loop
    return result
""",
        {"$loop": "$bad"},
        lambda rng: (rng.randint(1, 3999),),
        [
            variant(
                (1994,),
                "MCMXCIV",
                f="to_roman",
                argument="n",
                start='""',
                what="`n`, from 1 to 3999, as a Roman numeral",
                loop="while n >= value:\n            result += part\n            n -= value",
                bad="if n >= value:\n            result += part\n            n -= value",
                edges=((1,), (4,), (3999,)),
            ),
            variant(
                ("MCMXCIV",),
                1994,
                f="from_roman",
                argument="numeral",
                start="0",
                what="the integer that `numeral`, a correct numeral from I to MMMCMXCIX, stands for",
                loop="while numeral.startswith(part):\n            result += value\n"
                "            numeral = numeral[len(part) :]",
                bad="result += value * numeral.count(part)",
                edges=(("I",), ("IX",), ("XLII",), ("MMMCMXCIX",), ("VIII",)),
                draw=lambda rng: (
                    rng.choice(["", "M", "MM"])
                    + rng.choice(["", "C", "CD", "D", "DCC", "CM"])
                    + rng.choice(["", "X", "XL", "LX", "XC"])
                    + rng.choice(["I", "III", "IV", "VI", "IX"]),
                ),
            ),
        ],
    ),
    Family(
        "calendar",
        "In the Gregorian calendar a year is a leap year if it is divisible by 4, except that years divisible by "
        "100 are "
        "leap years only if divisible by 400. Define `$f($arguments)`: $what.",
        """
def $f($arguments):
    $body
""",
        {"$body": "$bad"},
        lambda rng: (rng.choice([rng.randint(1600, 2400), rng.randint(4, 6) * 400, rng.randint(16, 24) * 100]),),
        [
            variant(
                (1996,),
                True,
                f="is_leap_year",
                arguments="year",
                what="`True` if `year` is a leap year, else `False`",
                body="return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)",
                bad="return year % 4 == 0 and year % 100 != 0",
                edges=((1900,), (2000,), (2023,)),
            ),
            variant(
                (1999, 2004),
                2,
                f="count_leap_years",
                arguments="first, last",
                what="the number of leap years from `first` to `last`, both included, 0 if `first` is greater",
                body="years = range(first, last + 1)\n"
                "    return sum(year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) for year in years)",
                bad="return max(0, last // 4 - (first - 1) // 4)",
                edges=((1900, 1900), (2000, 2000), (2005, 1999)),
                draw=lambda rng: (rng.randint(1800, 2000), rng.randint(1950, 2100)),
            ),
            variant(
                (2024, 3, 1),
                61,
                f="day_of_year",
                arguments="year, month, day",
                what="the number of the given day within its year, where January 1 has number 1",
                body="lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]\n"
                "    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)\n"
                "    return sum(lengths[: month - 1]) + day + (leap and month > 2)",
                bad="lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]\n"
                "    return sum(lengths[: month - 1]) + day + (year % 4 == 0)",
                edges=((2024, 2, 29), (1900, 12, 31), (2000, 12, 31), (2023, 1, 1)),
                draw=lambda rng: (rng.randint(1990, 2030), rng.randint(1, 12), rng.randint(1, 28)),
            ),
        ],
    ),
    Family(
        "clock",
        'Times of day are texts `"HH:MM"` from `"00:00"` to `"23:59"`. Define `$f($arguments)`: $what.',
        """
def $f($arguments):
    hours, minutes = map(int, $source.split(":"))
    $body
""",
        {"$body": "$bad"},
        lambda rng: (
            f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}",
            f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}",
        ),
        [
            variant(
                ("23:50", "00:05"),
                15,
                f="minutes_until",
                arguments="start, end",
                source="end",
                what="the number of minutes from `start` to the next time that the clock shows `end`, 0 if they "
                "are equal",
                body="earlier = int(start[:2]) * 60 + int(start[3:])\n    return (hours * 60 + minutes - earlier) "
                "% 1440",
                bad="earlier = int(start[:2]) * 60 + int(start[3:])\n    return abs(hours * 60 + minutes - earlier)",
                edges=(("10:00", "10:00"), ("00:00", "23:59"), ("12:30", "12:29")),
            ),
            variant(
                ("23:50", 75),
                "01:05",
                f="add_minutes",
                arguments="time, count",
                source="time",
                what="the time `count` minutes after `time` (before it if `count` is negative), in the same format",
                body='total = (hours * 60 + minutes + count) % 1440\n    return f"{total // 60:02}:{total % 60:02}"',
                bad='total = hours * 60 + minutes + count\n    return f"{total // 60:02}:{total % 60:02}"',
                edges=(("00:00", -1), ("12:00", 1440), ("08:59", 1)),
                draw=lambda rng: (f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}", rng.randint(-900, 900)),
            ),
            variant(
                ("00:05",),
                "12:05 AM",
                f="to_twelve_hours",
                arguments="time",
                source="time",
                what='the time in the 12-hour format `"H:MM AM"` or `"H:MM PM"`, the hour from 1 to 12 without a '
                'leading zero; midnight is `"12:00 AM"` and noon `"12:00 PM"`',
                body="return f\"{(hours - 1) % 12 + 1}:{minutes:02} {'AM' if hours < 12 else 'PM'}\"",
                bad="return f\"{hours % 12}:{minutes:02} {'AM' if hours < 12 else 'PM'}\"",
                edges=(("12:00",), ("00:00",), ("11:59",), ("23:01",)),
                draw=lambda rng: (f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}",),
            ),
        ],
    ),
    Family(
        "division",
        "Define `$f(a, b)` for integers `a` and `b`, `b` not 0, without floating-point error even for very large "
        "numbers: the quotient a / b $rule, as an integer.",
        """
def $f(a, b):
    $body
""",
        {"$body": "$bad"},
        lambda rng: (rng.randint(-60, 60), rng.choice([-7, -4, -3, -2, 2, 3, 4, 6])),
        [
            variant(
                (-7, 2),
                -3,
                f="divide_toward_zero",
                rule="rounded towards zero",
                bad="return a // b",
                body="quotient = abs(a) // abs(b)\n    return quotient if (a < 0) == (b < 0) else -quotient",
            ),
            variant(
                (7, 2),
                4,
                f="divide_upward",
                rule="rounded up to the next integer unless it is one",
                body="return -(-a // b)",
                bad="return a // b + 1",
            ),
            variant(
                (-5, 2),
                -2,
                f="divide_half_up",
                rule="rounded to the nearest integer, halves upward (7.5 gives 8, -7.5 gives -7)",
                body="return (2 * a + b) // (2 * b)",
                bad="return round(a / b)",
            ),
        ],
        edges=((0, 5), (5, 2), (-5, -2), (6, -3), (7, -2), (10**20 + 1, 2)),
    ),
    Family(
        "bits",
        "Define `$f(n)` for a non-negative integer `n`, written in binary without leading zeros (0 is `0`): $what.",
        """
def $f(n):
    bits = bin(n)[2:]
    return $result
""",
        {"$result": "$bad"},
        lambda rng: (rng.randint(2, 4000),),
        [
            variant(
                (11,),
                3,
                f="count_one_bits",
                what="the number of its bits that are 1",
                result='bits.count("1")',
                bad="len(bits)",
            ),
            variant(
                (12,),
                2,
                f="trailing_zero_bits",
                what="the number of zeros at its end, 0 if `n` is 0",
                result='len(bits) - len(bits.rstrip("0")) if n else 0',
                bad='bits.count("0")',
            ),
            variant(
                (6,),
                3,
                f="reverse_bits",
                what="the integer whose binary form is that of `n` read backwards (leading zeros dropped)",
                result="int(bits[::-1], 2)",
                bad='int(bits.replace("0", "x").replace("1", "0").replace("x", "1"), 2)',
            ),
            variant(
                (37,),
                3,
                f="widest_bit_gap",
                what="the greatest distance between two neighbouring ones (ones with only "
                "zeros, or nothing, between them), where directly adjacent ones are at distance 1; 0 if it has fewer "
                "than two ones",
                result='max((len(gap) + 1 for gap in bits.split("1")[1:-1]), default=0)',
                bad='max((len(gap) + 1 for gap in bits.split("1")[1:]), default=0)',
                edges=((40,),),
            ),
        ],
        edges=((0,), (1,), (2,), (7,), (64,)),
    ),
    Family(
        "factorial_facts",
        "Define `$f(n)` for an integer `n` from 0 to 1000: $what, where n! = 1 * 2 * ... * n and 0! = 1.",
        """
def $f(n):
    product = 1
    for i in range(2, n + 1):
        product *= i
    return $result
""",
        {"$result": "$bad"},
        lambda rng: (rng.randint(5, 140),),
        [
            variant(
                (10,),
                2,
                f="factorial_zeros",
                what="the number of zeros at the end of the decimal form of n!",
                result='len(str(product)) - len(str(product).rstrip("0"))',
                bad="n // 5",
            ),
            variant(
                (5,),
                3,
                f="factorial_digit_count",
                what="the number of decimal digits of n!",
                result="len(str(product))",
                bad="(product.bit_length() + 2) // 3",
            ),
            variant(
                (10,),
                8,
                f="factorial_twos",
                what="how often n! can be halved without remainder",
                result="(product & -product).bit_length() - 1",
                bad="n // 2 + n // 4",
            ),
        ],
        edges=((0,), (1,), (4,), (25,), (100,)),
    ),
    Family(
        "sums_of_powers",
        "Define `$f(n)` for a non-negative integer `n`: the list of the tuples (a, b) of $what with a*a + b*b == `n`, "
        "in ascending order; `[]` if there are none.",
        """
def $f(n):
    found = []
    for a in range($least, n + 1):
        for b in range($start, n + 1):
            if a * a + b * b == n:
                found.append((a, b))
    return found
""",
        {"range($start": "range($bad"},
        lambda rng: (rng.randint(0, 7) ** 2 + rng.randint(0, 8) ** 2,),
        [
            variant(
                (50,),
                [(1, 7), (5, 5)],
                f="sums_of_two_squares",
                what="positive integers a <= b",
                least="1",
                start="a",
                bad="a + 1",
            ),
            variant(
                (25,),
                [(0, 5), (3, 4), (4, 3), (5, 0)],
                f="grid_points_at_distance",
                what="non-negative integers",
                least="0",
                start="0",
                bad="a",
            ),
        ],
        edges=((0,), (1,), (2,), (3,), (65,)),
    ),
    Family(
        "triangles_of_integers",
        "Define `$f(n)` for a non-negative integer `n`: $what with positive integers $bounds.",
        """
def $f(n):
    found = []
    for a in range(1, n + 1):
        for b in range(a, n + 1):
            c = n - a - b
            if $condition:
                found.append((a, b, c))
    return $result
""",
        {"range(a, n + 1)": "range($wrong_bounds)"},
        lambda rng: (rng.randint(8, 70),),
        [
            variant(
                (12,),
                [(3, 4, 5)],
                f="right_triangles",
                bounds="a < b < c",
                result="found",
                what="the list of the tuples (a, b, c) with a*a + b*b == c*c and a + b + c == `n`, in ascending order,",
                condition="c > b and a * a + b * b == c * c",
                edges=((60,), (84,)),
                wrong_bounds="a * 2, n + 1",
                draw=lambda rng: (rng.randint(1, 11) * 12,),
            ),
            variant(
                (12,),
                3,
                f="count_integer_triangles",
                bounds="a <= b <= c",
                result="len(found)",
                what="the number of triangles (a, b, c) with a + b > c and a + b + c == `n`",
                edges=((3,), (9,)),
                condition="c >= b and a + b > c",
                wrong_bounds="a + 1, n + 1",
            ),
        ],
        edges=((0,), (1,), (4,)),
    ),
    Family(
        "polynomial",
        "A polynomial is a list of its integer coefficients, where the coefficient at index i belongs to x**i: "
        "`[5, 0, 2]` is 2x² + 5. Define `$f(coefficients$more)`: $what.",
        """
def $f(coefficients$more):
    $body
""",
        {"$body": "$bad"},
        lambda rng: (integers(rng, -5, 5, 1, 5),),
        [
            variant(
                ([1, 0, 2], 3),
                19,
                f="evaluate_polynomial",
                more=", x",
                what="its value at the integer `x`; the empty list is the polynomial 0",
                body="return sum(c * x**i for i, c in enumerate(coefficients))",
                bad="return sum(c * x**i for i, c in enumerate(coefficients[::-1]))",
                edges=(([], 2), ([7], 0), ([1, 1], -1)),
                draw=lambda rng: (integers(rng, -5, 5, 1, 5), rng.randint(-4, 4)),
            ),
            variant(
                ([1, 4, 3],),
                [4, 6],
                f="differentiate_polynomial",
                more="",
                what="the coefficients of its derivative, one fewer than those given (so `[]` for one coefficient "
                "or none)",
                body="return [i * c for i, c in enumerate(coefficients)][1:]",
                bad="return [i * c for i, c in enumerate(coefficients[1:])]",
                edges=(([],), ([5],), ([0, 0, 1],)),
            ),
            variant(
                ([1, 1], [1, -1]),
                [1, 0, -1],
                f="multiply_polynomials",
                more=", others",
                what="the coefficients of the product with the polynomial `others`, as many as the two lists have "
                "together minus 1; neither list is empty",
                body="result = [0] * (len(coefficients) + len(others) - 1)\n    for i, a in enumerate(coefficients):\n"
                "        for j, b in enumerate(others):\n            result[i + j] += a * b\n    return result",
                bad="return [a * b for a, b in zip(coefficients, others)]",
                edges=(([2], [3]), ([0], [1, 2])),
                draw=lambda rng: (integers(rng, -4, 4, 1, 4), integers(rng, -4, 4, 1, 4)),
            ),
        ],
    ),
    Family(
        "digit_arrangement",
        "Define `$f(n)` for a non-negative integer `n`: $what.",
        """
def $f(n):
    digits = str(n)
    return $result
""",
        {"$result": "$bad"},
        lambda rng: (rng.randint(10, 99999),),
        [
            variant(
                (302,),
                320,
                f="largest_arrangement",
                what="the largest integer that its decimal digits can form in any order",
                result='int("".join(sorted(digits, reverse=True)))',
                bad="int(digits[::-1])",
            ),
            variant(
                (302,),
                203,
                f="smallest_arrangement",
                what="the smallest integer that its decimal digits can form in any "
                "order with the first digit not 0 (0 itself stays 0)",
                result='min((int(d + "".join(sorted(digits.replace(d, "", 1)))) for d in digits if d > "0"), '
                "default=0)",
                bad='int("".join(sorted(digits)))',
            ),
            variant(
                (3052,),
                352,
                f="drop_one_digit",
                what="the largest integer that remains after striking out exactly one of "
                "its decimal digits (leading zeros vanish); 0 if `n` has one digit",
                result='max(int(digits[:i] + digits[i + 1 :] or "0") for i in range(len(digits)))',
                bad='int(digits.replace(min(digits), "", 1) or "0")',
            ),
        ],
        edges=((0,), (7,), (10,), (1100,), (321,)),
    ),
    Family(
        "read_integers",
        "Write a program that reads integers, one a line, until a line that holds only `$stop` (always present, "
        "not itself "
        "part of the data; what follows it is ignored), and prints $what.",
        """
numbers = []
while (line := input()) != "$stop":
    numbers.append(int(line))
$body
""",
        {"$body": "$bad"},
        lambda rng: lines(*integers(rng, 1, 99, 2, 7)) + "0\n" + rng.choice(["", "5\n"]),
        [
            variant(
                "3\n8\n0\n9\n",
                "2 11 8",
                stop="0",
                body="print(len(numbers), sum(numbers), max(numbers, default=0))",
                bad="print(len(numbers), sum(numbers), numbers[-1] if numbers else 0)",
                what="their number, their sum and the largest one, separated by spaces (0 0 0 if there are none); all "
                "integers are positive",
                edges=("0\n", "7\n0\n", "5\n2\n0\n"),
            ),
            variant(
                "3\n8\nend\n",
                "5.50",
                stop="end",
                bad="print(sum(numbers) // max(len(numbers), 1))",
                body='print(f"{sum(numbers) / len(numbers):.2f}" if numbers else "none")',
                what="their mean with exactly two decimals, or `none` if there are no integers; the number of "
                "integers is "
                "1, 2, 4 or 5",
                edges=("end\n", "-1\n-2\nend\n7\n"),
                draw=lambda rng: lines(*rng.sample(range(-50, 99), rng.choice([1, 2, 4, 5])), "end"),
            ),
            variant(
                "3\n8\n5\n-1\n",
                "8 5 3",
                stop="-1",
                body='print(*sorted(numbers, reverse=True) or ["empty"])',
                bad='print(*sorted(set(numbers), reverse=True) or ["empty"])',
                what="them from largest to smallest on one line, separated by spaces, equal ones repeated, or "
                "`empty` if "
                "there are none; all integers are non-negative",
                edges=("-1\n", "2\n2\n-1\n4\n"),
                draw=lambda rng: lines(*integers(rng, 0, 9, 2, 7), -1),
            ),
        ],
        stdio=True,
    ),
    Family(
        "expressions",
        "The first line of the input is a positive integer n, followed by n lines, each with $format. Write a "
        "program that "
        "prints one line for each of them: $what.",
        """
for _ in range(int(input())):
    left, sign, right = input().split()
    a, b = int(left), int(right)
    $body
""",
        {"$body": "$bad"},
        lambda rng: (lambda rows: lines(len(rows), *rows))(
            [(rng.randint(-9, 20), rng.choice("+-*"), rng.randint(-9, 20)) for _ in range(rng.randint(1, 4))]
        ),
        [
            variant(
                "2\n3 + 4\n5 - 8\n",
                "7\n-3",
                format="two integers with one of the signs + - * between them, separated by spaces",
                what="the value",
                body='print({"+": a + b, "-": a - b, "*": a * b}[sign])',
                bad='print({"+": a + b, "-": abs(a - b), "*": a * b}[sign])',
                edges=("1\n-2 * -3\n",),
            ),
            variant(
                "2\n7 / 2\n5 % 0\n",
                "3\nerror",
                format="two integers with one of the signs / and % between them, separated by spaces",
                what="for / the quotient rounded down, for % the remainder of that division (which "
                "has the sign of the right integer), and `error` if the right integer is 0",
                body='print("error" if b == 0 else a // b if sign == "/" else a % b)',
                bad='print("error" if b == 0 else int(a / b) if sign == "/" else abs(a) % abs(b))',
                edges=("1\n-7 / 2\n", "2\n-7 % 3\n7 % -3\n"),
                draw=lambda rng: (lambda rows: lines(len(rows), *rows))(
                    [(rng.randint(-20, 20), rng.choice("/%"), rng.randint(-4, 5)) for _ in range(rng.randint(2, 5))]
                ),
            ),
            variant(
                "2\n3 < 4\n5 = 8\n",
                "yes\nno",
                format="two integers with one of the signs < > = between them, separated by spaces",
                what="`yes` if the statement is true, else `no`",
                body='print("yes" if {"<": a < b, ">": a > b, "=": a == b}[sign] else "no")',
                bad='print("yes" if {"<": a <= b, ">": a >= b, "=": a == b}[sign] else "no")',
                edges=("1\n-2 > -3\n", "3\n4 < 4\n4 = 4\n4 > 4\n"),
                draw=lambda rng: (lambda rows: lines(len(rows), *rows))(
                    [(rng.randint(-3, 3), rng.choice("<>="), rng.randint(-3, 3)) for _ in range(rng.randint(2, 5))]
                ),
            ),
        ],
        stdio=True,
    ),
]
