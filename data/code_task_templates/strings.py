"""Tasks about text."""

from .common import Family, lines, sentence, variant, word

ANY_TEXT = (("",), (" ",))

FAMILIES = [
    Family(
        "count_letters",
        "Define `$f(text)`: the number of $what in `text`.",
        """
def $f(text):
    return sum(character in $letters for character in text)
""",
        {"for character in text)": "for character in text[:-1])"},
        lambda rng: (sentence(rng) + rng.choice(["", " 42", "E", "!7?", "-y", "xyz", " 1o1"]),),
        [
            variant(
                ("Anna sees",),
                4,
                f="count_vowels",
                what="letters among a, e, i, o, u, upper and lower case alike,",
                letters='"aeiouAEIOU"',
            ),
            variant(("a1b22",), 3, f="count_digits", what="digits 0 to 9", letters='"0123456789"'),
            variant(
                ("Hello World",),
                7,
                f="count_consonants",
                letters='"bcdfghjklmnpqrstvwxyzBCDFGHJKLMNPQRSTVWXYZ"',
                what="English letters (upper or lower case) other than a, e, i, o, u (so y counts)",
            ),
        ],
        edges=(("",), ("AEIOU xyz 123",)),
    ),
    Family(
        "rearrange_words",
        "Words are separated by single spaces in `text`. Define `$f(text)`: `text` $what. An empty text stays empty.",
        """
def $f(text):
    return $result
""",
        {"$result": "$bad"},
        lambda rng: (sentence(rng),),
        [
            variant(
                ("one two",),
                "two one",
                f="reverse_word_order",
                what="with its words in reverse order",
                result='" ".join(text.split(" ")[::-1])',
                bad="text[::-1]",
            ),
            variant(
                ("one two",),
                "eno owt",
                f="reverse_each_word",
                what="with the letters of each word reversed, the words staying in their places",
                result='" ".join(word[::-1] for word in text.split(" "))',
                bad="text[::-1]",
            ),
            variant(
                ("one two six",),
                "two six one",
                f="rotate_words",
                what="with its first word moved to the end",
                result='" ".join(text.split(" ")[1:] + text.split(" ")[:1])',
                bad='" ".join(text.split(" ")[-1:] + text.split(" ")[:-1])',
            ),
            variant(
                ("one two six",),
                "one owt six",
                f="reverse_odd_words",
                what="with the letters of every second word reversed (the second, the fourth, ... word)",
                result='" ".join(word[::-1] if i % 2 else word for i, word in enumerate(text.split(" ")))',
                bad='" ".join(word if i % 2 else word[::-1] for i, word in enumerate(text.split(" ")))',
            ),
        ],
        edges=(("",), ("single",)),
    ),
    Family(
        "palindrome",
        "Define `$f(text)`: `True` if `text` reads the same forwards and backwards, else `False`. $rule "
        "A text without any character to compare is a palindrome.",
        """
def $f(text):
    kept = $kept
    return kept == kept[::-1]
""",
        {"$kept": "$bad"},
        lambda rng: (
            (lambda half: half + rng.choice(["", "a", "B", " "]) + half[::-1] + rng.choice(["", "", ".", "A"]))(
                word(rng, "abAB ,1", 1, 4)
            ),
        ),
        [
            variant(
                ("Level",),
                False,
                f="is_exact_palindrome",
                kept="text",
                bad="text.lower()",
                rule="Every character counts, and upper and lower case differ.",
            ),
            variant(
                ("Never odd, or even",),
                True,
                f="is_letter_palindrome",
                bad="text.lower()",
                kept="[character.lower() for character in text if character.isalpha()]",
                rule="Only letters count, upper and lower case alike.",
            ),
            variant(
                ("1a2 B2A1.",),
                True,
                f="is_alphanumeric_palindrome",
                edges=(("12",), ("1.2 1",)),
                kept="[character.lower() for character in text if character.isalnum()]",
                bad="[character.lower() for character in text if character.isalpha()]",
                rule="Only letters and digits count, upper and lower case alike.",
            ),
        ],
        edges=(("",), ("..",), ("ab",), ("Aa",), ("abca",)),
    ),
    Family(
        "caesar",
        "Define `$f(text, shift)`: `text` with every $what; $wraps. All other characters stay. "
        "`shift` may be any integer, also a negative one.",
        """
def $f(text, shift):
    result = []
    for character in text:
        if character in "$alphabet":
            position = "$alphabet".index(character)
            character = "$alphabet"[(position $sign shift) % $size]
        result.append(character)
    return "".join(result)
""",
        {"(position $sign shift) % $size": "min(max(position $sign shift, 0), $size - 1)"},
        lambda rng: (sentence(rng, 1, 4) + str(rng.randint(0, 99)), rng.randint(-40, 40)),
        [
            variant(
                ("Xyz", 3),
                "Xbc",
                f="encode_caesar",
                alphabet="abcdefghijklmnopqrstuvwxyz",
                sign="+",
                size="26",
                what="lower-case English letter replaced by the one `shift` places later in the alphabet",
                wraps="after z comes a",
            ),
            variant(
                ("xbc A", 3),
                "uyz A",
                f="decode_caesar",
                alphabet="abcdefghijklmnopqrstuvwxyz",
                sign="-",
                size="26",
                what="lower-case English letter replaced by the one `shift` places earlier in the alphabet",
                wraps="before a comes z",
            ),
            variant(
                ("a98", 3),
                "a21",
                f="shift_digits",
                alphabet="0123456789",
                sign="+",
                size="10",
                what="digit replaced by the one `shift` places later",
                wraps="after 9 comes 0",
            ),
        ],
        edges=(("", 5), ("z9", 1), ("a0", -1), ("Same 5x", 0)),
    ),
    Family(
        "run_length_encode",
        "A run is a longest possible stretch of equal neighbouring characters. Define `$f(text)`: $what. "
        "The empty text gives $empty.",
        """
from itertools import groupby


def $f(text):
    runs = [(character, len(list(group))) for character, group in groupby(text)]
    return $result
""",
        {"groupby(text)": "groupby(sorted(text))"},
        lambda rng: ("".join(rng.choice("abcd") * rng.choice([1, 1, 2, 3, 11]) for _ in range(rng.randint(2, 5))),),
        [
            variant(
                ("aab",),
                "a2b1",
                what="each run of `text` written as its character and its length, joined",
                result='"".join(f"{character}{count}" for character, count in runs)',
                empty='`""`',
            ),
            variant(
                ("aaba",),
                "2aba",
                f="short_run_lengths",
                empty='`""`',
                what="each run of `text` written as its length and its character, joined; "
                "the length is left out where it is 1",
                result='"".join((str(count) if count > 1 else "") + character for character, count in runs)',
            ),
            variant(
                ("aaba",),
                [("a", 2), ("b", 1), ("a", 1)],
                f="list_runs",
                empty="`[]`",
                result="runs",
                what="the list of the runs of `text` in order, each as a tuple (character, length)",
            ),
            variant(
                ("aaba",),
                [2, 1, 1],
                f="run_lengths",
                empty="`[]`",
                result="[count for _, count in runs]",
                what="the list of the lengths of the runs of `text`, in order",
            ),
        ],
        edges=(("",), ("a",), ("abab",)),
    ),
    Family(
        "run_length_decode",
        "`code` is a sequence of pairs: $pair (a positive number without leading zeros, possibly of several digits). "
        "Define `$f(code)`: the text that has each letter repeated as often as its number says, in order.",
        """
import re


def $f(code):
    return "".join(letter * int(number) for $order in re.findall(r"$pattern", code))
""",
        {"$pattern": "$bad"},
        lambda rng: ("a1",),
        [
            variant(
                ("a2b10",),
                "aabbbbbbbbbb",
                f="expand_letter_first",
                order="letter, number",
                pattern=r"([a-z])(\d+)",
                bad=r"([a-z])(\d)",
                pair="a lower-case letter and its number",
                edges=(("z1",), ("x12",)),
                draw=lambda rng: (
                    "".join(rng.choice("xyz") + str(rng.randint(1, 12)) for _ in range(rng.randint(2, 5))),
                ),
            ),
            variant(
                ("2a10b",),
                "aabbbbbbbbbb",
                f="expand_number_first",
                order="number, letter",
                pattern=r"(\d+)([a-z])",
                bad=r"(\d)([a-z])",
                pair="a number and its lower-case letter",
                edges=(("1z",), ("12x",)),
                draw=lambda rng: (
                    "".join(str(rng.randint(1, 12)) + rng.choice("xyz") for _ in range(rng.randint(2, 5))),
                ),
            ),
        ],
        edges=(("",),),
    ),
    Family(
        "longest_run",
        "A run is a longest possible stretch of equal neighbouring characters. Define `$f(text)`: $what.",
        """
from itertools import groupby


def $f(text):
    best, best_length = "", 0
    for character, group in groupby(text):
        length = len(list(group))
        if length $compare best_length:
            best, best_length = character, length
    return $result
""",
        {"$compare": "$bad", "return $result": "return $bad_result"},
        lambda rng: ("".join(rng.choice("abc ") * rng.choice([1, 2, 2, 3]) for _ in range(rng.randint(2, 7))),),
        [
            variant(
                ("abbcc",),
                2,
                f="longest_run_length",
                compare=">",
                bad=">",
                result="best_length",
                bad_result="max(map(text.count, text), default=0)",
                what="the length of the longest run in `text`, 0 if `text` is empty",
            ),
            variant(
                ("abbcc",),
                "b",
                f="first_longest_run",
                compare=">",
                bad=">=",
                result="best",
                bad_result="best",
                what='the character of the longest run in `text`, the first such run if several tie, `""` if `text` '
                "is empty",
            ),
            variant(
                ("abbcc",),
                "cc",
                f="last_longest_run",
                compare=">=",
                bad=">",
                result="best * best_length",
                bad_result="best * best_length",
                what='the longest run in `text` itself, the last such run if several tie, `""` if `text` is empty',
            ),
        ],
        edges=(("",), ("abc",), ("abab",), ("aaba",)),
    ),
    Family(
        "most_frequent",
        "Define `$f(text)`: the character that occurs $how often in `text`. "
        'If several tie, it is $tie. The empty text gives `""`.',
        """
def $f(text):
    best = ""
    for character in $order:
        if best == "" or text.count(character) $compare text.count(best):
            best = character
    return best
""",
        {"in $order": "in $bad"},
        lambda rng: (word(rng, "cabde", 4, 12),),
        [
            variant(
                ("baab",),
                "a",
                f="most_frequent_smallest",
                how="most",
                tie="the alphabetically smallest of them",
                order="sorted(text)",
                bad="text",
                compare=">",
            ),
            variant(
                ("bbaac",),
                "b",
                f="most_frequent_earliest",
                how="most",
                compare=">",
                order="text",
                bad="sorted(text)",
                tie="the one whose first occurrence comes earliest",
            ),
            variant(
                ("bcaac",),
                "b",
                f="least_frequent_earliest",
                how="least",
                compare="<",
                order="text",
                bad="sorted(text)",
                tie="the one whose first occurrence comes earliest",
                edges=(("ba",),),
            ),
            variant(
                ("abbaacc",),
                "c",
                f="least_frequent_largest",
                how="least",
                compare="<",
                bad="sorted(text)",
                order="sorted(text, reverse=True)",
                tie="the alphabetically largest of them",
                edges=(("cab",),),
            ),
        ],
        edges=(("",), ("z",)),
    ),
    Family(
        "anagram",
        "Define `$f(first, second)`: `True` if the two texts have the same $what, each equally often, else "
        "`False`. $rule",
        """
from collections import Counter


def $f(first, second):
    return Counter($one) == Counter($other)
""",
        {"Counter(": "set("},
        lambda rng: (lambda text: (text, "".join(rng.sample(text, len(text))) + rng.choice(["", "", " ", "a", "A"])))(
            word(rng, "aAbB  c", 3, 8)
        ),
        [
            variant(
                ("Tea", "eat"),
                False,
                f="are_exact_anagrams",
                one="first",
                other="second",
                what="characters",
                rule="Upper and lower case differ, and spaces count.",
            ),
            variant(
                ("Tea time", "Eat Item"),
                True,
                f="are_letter_anagrams",
                what="characters other than spaces",
                one='first.lower().replace(" ", "")',
                other='second.lower().replace(" ", "")',
                rule="Upper and lower case are alike.",
            ),
            variant(
                ("a b a", "b a a"),
                True,
                f="are_word_anagrams",
                one="first.split()",
                other="second.split()",
                what="words (separated by one or more spaces)",
                rule="Upper and lower case differ.",
                draw=lambda rng: (
                    lambda words: (
                        " ".join(words),
                        " ".join(rng.sample(words, len(words)) + rng.choice([[], [], ["a"]])),
                    )
                )(rng.choices(["a", "A", "bc", "cb"], k=rng.randint(2, 5))),
            ),
        ],
        edges=(("", ""), ("aab", "abb"), ("ab", "ba"), ("a", ""), ("ab b", "ab  b")),
    ),
    Family(
        "count_occurrences",
        "Define `$f(text, part)`: how often `part` occurs in `text`, $how. `part` is not empty.",
        """
def $f(text, part):
    count, start = 0, text.find(part)
    while start != -1:
        count += 1
        start = text.find(part, start + $step)
    return count
""",
        {"$step": "$bad"},
        lambda rng: (word(rng, "ab", 6, 14), rng.choice(["a", "aa", "aba", "bb", "abab", "aaa"])),
        [
            variant(
                ("aaaa", "aa"), 3, f="count_overlapping", step="1", bad="len(part)", how="where occurrences may overlap"
            ),
            variant(
                ("aaaaa", "aa"),
                2,
                f="count_disjoint",
                step="len(part)",
                bad="1",
                how="taken from left to right without overlap: the search goes on behind each occurrence found",
            ),
        ],
        edges=(("", "a"), ("aaa", "aa"), ("abc", "abcd"), ("abababa", "aba")),
    ),
    Family(
        "snake_case",
        "`name` is a word in lower-case letters or several of them joined by single underscores, like `file_name_end`. "
        "Define `$f(name)`: the same name as $what.",
        """
def $f(name):
    words = name.split("_")
    return $result
""",
        {"$result": "$bad"},
        lambda rng: ("_".join(word(rng, "abcxyz", 1, 5) for _ in range(rng.randint(1, 4))),),
        [
            variant(
                ("max_line_size",),
                "maxLineSize",
                f="snake_to_camel",
                bad='words[0] + "".join(words[1:]).capitalize()',
                result='words[0] + "".join(word.capitalize() for word in words[1:])',
                what="words joined directly, each but the first with a capital first letter (`fileNameEnd`)",
            ),
            variant(
                ("max_line_size",),
                "MaxLineSize",
                f="snake_to_pascal",
                result='"".join(word.capitalize() for word in words)',
                bad='"".join(words).capitalize()',
                what="words joined directly, each with a capital first letter (`FileNameEnd`)",
            ),
            variant(
                ("max_line_size",),
                "mls",
                f="snake_initials",
                result='"".join(word[0] for word in words)',
                bad='"".join(words)[: len(words)]',
                what="the joined first letters of its words (`fne`)",
            ),
        ],
        edges=(("word",), ("a_b",)),
    ),
    Family(
        "camel_case",
        "`name` is made of English letters. Define `$f(name)`: $what.",
        """
def $f(name):
    result = ""
    for i, letter in enumerate(name):
        if letter.isupper() and i > 0:
            result += "$mark"
        result += $letter
    return $value
""",
        {" and i > 0": ""},
        lambda rng: (
            word(rng, "xy", 0, 3) + "".join(word(rng, "abc", 1, 4).capitalize() for _ in range(rng.randint(1, 4))),
        ),
        [
            variant(
                ("maxLineSize",),
                "max_line_size",
                f="camel_to_snake",
                mark="_",
                letter="letter.lower()",
                value="result",
                what="`name` with an underscore before each capital letter except a first one, all in lower case",
            ),
            variant(
                ("MaxLine",),
                "Max Line",
                f="split_camel",
                mark=" ",
                letter="letter",
                value="result",
                what="`name` with a space before each capital letter except where it is the very first letter",
            ),
            variant(
                ("maxLineSize",),
                3,
                f="count_camel_words",
                mark=" ",
                letter="letter",
                value='len(result.split(" "))',
                what="its number of words, where a new word starts at each capital letter and at the first letter",
            ),
        ],
        edges=(("word",), ("Word",), ("aBCd",), ("ABC",)),
    ),
    Family(
        "brackets",
        "Define `$f(text)`: `True` if the brackets $kinds in `text` are balanced, else `False`: each closing bracket "
        "closes the most recently opened one that is still open, which must be of its kind, and none stays open. "
        "All other characters are ignored; a text without brackets is balanced.",
        """
def $f(text):
    opened = []
    for character in text:
        if character in "$opening":
            opened.append(character)
        elif character in "$closing":
            kind = "$opening"["$closing".index(character)]
            if not opened or opened.pop() != kind:
                return False
    return not opened
""",
        {"return not opened": "return True"},
        lambda rng: (
            rng.choice(["([{}])", "(<>)", "()[]", "(x[y]z)", "{()}[]", "((a))", "<[]>"])[: rng.randint(3, 6)]
            + rng.choice(["", "", ")", "()", "(", "]", "{}", "<"]),
        ),
        [
            variant(("(a[b)]",), True, f="round_balanced", kinds="( and )", opening="(", closing=")"),
            variant(("(a[b)]",), False, f="brackets_balanced", kinds="( ), [ ] and { }", opening="([{", closing=")]}"),
            variant(("<(>)",), False, f="angles_balanced", kinds="( ) and < >", opening="(<", closing=")>"),
        ],
        edges=(("",), (")(",), ("((",), ("no brackets",), ("(()())",)),
    ),
    Family(
        "bracket_depth",
        "`text` holds only ( and ), balanced. Define `$f(text)`: $what, 0 if `text` is empty.",
        """
def $f(text):
    depth = result = 0
    for i, character in enumerate(text):
        depth += 1 if character == "(" else -1
        $step
    return result
""",
        {"$step": "$bad"},
        lambda rng: (
            "".join(
                "(" * (n := rng.randint(1, 4)) + "()" * rng.randint(0, 2) + ")" * n for _ in range(rng.randint(1, 4))
            ),
        ),
        [
            variant(
                ("(()())()",),
                2,
                f="nesting_depth",
                step="result = max(result, depth)",
                bad='result = depth if character == "(" else result',
                what="the depth of its deepest nesting",
            ),
            variant(
                ("(()())()",),
                2,
                f="count_outer_groups",
                step='result += character == ")" and depth == 0',
                bad='result += character == "(" and depth == 2',
                what="the number of its outermost pairs",
            ),
            variant(
                ("(()())()",),
                3,
                f="count_empty_pairs",
                what="the number of pairs with nothing between them",
                step='result += text[i : i + 2] == "()"',
                bad='result += character == "(" and depth == 1',
            ),
        ],
        edges=(("",), ("()",), ("()()",), ("((()))",)),
    ),
    Family(
        "common_affix",
        "Define `$f(words)`: the longest text that every word of the list `words` $how. It may be empty; "
        'the empty list gives `""`.',
        """
def $f(words):
    if not words:
        return ""
    length = 0
    while all(length < len(word) and $same for word in words):
        length += 1
    return $result
""",
        {"length < len(word)": "length < len(word) - 1"},
        lambda rng: (
            (lambda core: [core + word(rng, "ab", 0, 3) + core[::-1] for _ in range(rng.randint(1, 4))])(
                word(rng, "xyz", 0, 4)
            ),
        ),
        [
            variant(
                (["flow", "flock", "fly"],),
                "fl",
                f="common_prefix",
                how="starts with",
                same="word[length] == words[0][length]",
                result="words[0][:length]",
            ),
            variant(
                (["singing", "ring", "king"],),
                "ing",
                f="common_suffix",
                how="ends with",
                same="word[-length - 1] == words[0][-length - 1]",
                result="words[0][len(words[0]) - length :]",
            ),
        ],
        edges=(([],), (["same"],), (["ab", "ab"],), (["a", ""],), (["ab", "cd"],)),
    ),
    Family(
        "drop_repeats",
        "Define `$f(text)`: `text` without $what, the remaining characters in their order.",
        """
def $f(text):
    return "".join(letter for i, letter in enumerate(text) if $keep)
""",
        {"$keep": "$bad"},
        lambda rng: (word(rng, "abcd", 4, 12),),
        [
            variant(
                ("abcabb",),
                "abc",
                f="keep_first_occurrences",
                keep="letter not in text[:i]",
                bad="i == 0 or letter != text[i - 1]",
                what="every character that already occurred earlier in it (the first occurrence of each stays)",
            ),
            variant(
                ("abcabb",),
                "cab",
                f="keep_last_occurrences",
                keep="letter not in text[i + 1 :]",
                bad="letter not in text[:i]",
                what="every character that occurs again later in it (the last occurrence of each stays)",
            ),
            variant(
                ("aabcca",),
                "abca",
                f="squeeze",
                keep="i == 0 or letter != text[i - 1]",
                bad="letter not in text[:i]",
                what="every character that equals the one directly before it in `text`",
            ),
            variant(
                ("aabcd",),
                "bcd",
                f="keep_unique",
                keep="text.count(letter) == 1",
                bad="letter not in text[:i]",
                what="all characters that occur in it more than once",
            ),
        ],
        edges=(("",), ("aaa",), ("abca",)),
    ),
    Family(
        "pick_word",
        "Words are separated by one or more spaces in `text`. Define `$f(text)`: the $which word, $tie if several "
        'have that length, `""` if there is no word.',
        """
def $f(text):
    result = ""
    for word in text.split():
        if result == "" or len(word) $compare len(result):
            result = word
    return result
""",
        {"$compare": "$bad"},
        lambda rng: (sentence(rng),),
        [
            variant(
                ("a bc de",), "bc", f="first_longest_word", which="longest", tie="the first", compare=">", bad=">="
            ),
            variant(("a bc de",), "de", f="last_longest_word", which="longest", tie="the last", compare=">=", bad=">"),
            variant(
                ("abc d e",), "d", f="first_shortest_word", which="shortest", tie="the first", compare="<", bad="<="
            ),
        ],
        edges=(("",), ("   ",), ("ab  cd",)),
    ),
    Family(
        "sort_words",
        "Words are separated by single spaces in `text`, all in lower-case letters. Define `$f(text)`: the list of the "
        "words sorted by $key; the empty text gives `[]`.",
        """
def $f(text):
    return sorted(text.split(), key=lambda word: $value)
""",
        {"$value": "$bad"},
        lambda rng: (sentence(rng, 3, 8).lower(),),
        [
            variant(
                ("ccc b aa a",),
                ["a", "b", "aa", "ccc"],
                f="sort_by_length",
                value="(len(word), word)",
                bad="len(word)",
                key="length, shortest first, and alphabetically among those of one length",
            ),
            variant(
                ("bz aa ca a",),
                ["aa", "ca", "a", "bz"],
                f="sort_by_last_letter",
                value="word[-1]",
                bad="word[::-1]",
                key="their last letter, words with the same last letter in their order in `text`",
                edges=(("banana papa area",),),
            ),
            variant(
                ("see tree a bcd",),
                ["bcd", "a", "see", "tree"],
                f="sort_by_vowels",
                value='(sum(letter in "aeiou" for letter in word), word)',
                bad='sum(letter in "aeiou" for letter in word)',
                key="how many of their letters are among a, e, i, o, u, fewest first, and alphabetically among words "
                "with equally many",
            ),
        ],
        edges=(("",), ("one",), ("b a b",)),
    ),
    Family(
        "compare_positions",
        "Define `$f(first, second)`: $what.",
        """
def $f(first, second):
    return $result
""",
        {"$result": "$bad"},
        lambda rng: (word(rng, "abc", 2, 8), word(rng, "abc", 2, 8)),
        [
            variant(
                ("abcd", "abd"),
                2,
                f="padded_distance",
                what="the number of positions at which the two texts differ; a position that only the longer one has "
                "counts as a difference",
                result="sum(a != b for a, b in zip(first, second)) + abs(len(first) - len(second))",
                bad="sum(a != b for a, b in zip(first, second))",
            ),
            variant(
                ("abcd", "xbcdd"),
                [1, 2, 3],
                f="matching_positions",
                what="the list of the positions (counted from 0) that both texts have and at which they agree",
                result="[i for i, (a, b) in enumerate(zip(first, second)) if a == b]",
                bad="[i for i, a in enumerate(first) if a in second]",
            ),
            variant(
                ("abc", "xyzuv"),
                "axbyczuv",
                f="interleave_texts",
                what="the first character of `first`, the first of `second`, the second of `first` and so on; when one "
                "is used up, the rest of the other follows",
                result='"".join(first[i : i + 1] + second[i : i + 1] for i in range(max(len(first), len(second))))',
                bad='"".join(a + b for a, b in zip(first, second))',
            ),
        ],
        edges=(("", ""), ("", "ab"), ("aba", "aba")),
    ),
    Family(
        "subsequence",
        "Define `$f(part, text)`: `True` if `part` can be made from `text` by $how, else `False`. "
        "The empty `part` always can.",
        """
def $f(part, text):
    $body
""",
        {"$body": "$bad"},
        lambda rng: (word(rng, "abc", 2, 4), word(rng, "abc", 3, 8)),
        [
            variant(
                ("ace", "abcde"),
                True,
                f="is_subsequence",
                how="deleting characters, the others keeping their order",
                body="rest = iter(text)\n    return all(letter in rest for letter in part)",
                bad="return all(letter in text for letter in part)",
            ),
            variant(
                ("cba", "abc"),
                True,
                f="can_spell",
                how="choosing characters in any order, each at most as often as it occurs in `text`",
                body="return all(part.count(letter) <= text.count(letter) for letter in part)",
                bad="return all(letter in text for letter in part)",
            ),
        ],
        edges=(("", ""), ("a", ""), ("aa", "a"), ("aab", "baa"), ("", "abc")),
    ),
    Family(
        "distinct_windows",
        "Define `$f(text, size)`: the number of different substrings of `text` that have exactly `size` "
        "characters$rule. "
        "`size` is at least 1; a text shorter than that has none.",
        """
def $f(text, size):
    parts = {text[i : i + size] for i in range(len(text) - size + 1)}
    return sum($condition for part in parts)
""",
        {"- size + 1": "- size"},
        lambda rng: (word(rng, "ab" if rng.random() < 0.5 else "abc", 4, 14), rng.randint(1, 4)),
        [
            variant(("abab", 2), 2, f="count_distinct_parts", rule="", condition="1"),
            variant(
                ("abaab", 3),
                1,
                f="count_palindromic_parts",
                rule=" and read the same backwards",
                condition="part == part[::-1]",
            ),
            variant(
                ("abac", 2),
                3,
                f="count_varied_parts",
                rule=" and hold no character twice",
                condition="len(set(part)) == size",
            ),
        ],
        edges=(("", 1), ("ab", 3), ("aaaa", 2), ("abc", 3)),
    ),
    Family(
        "window_without_repeats",
        "Consider the stretches of neighbouring characters in `text` that $rule. Define `$f(text)`: $what.",
        """
def $f(text):
    best = ""
    for start in range(len(text)):
        end = start
        while end < len(text) and $fits:
            end += 1
        if end - start > len(best):
            best = text[start:end]
    return $result
""",
        {"end - start > len(best)": "end - start >= len(best)", "$result": "$bad"},
        lambda rng: (word(rng, "abcd", 5, 14),),
        [
            variant(
                ("abcab",),
                3,
                f="longest_distinct_length",
                rule="hold no character twice",
                result="len(best)",
                bad="len(set(text))",
                fits="text[end] not in text[start:end]",
                what="the length of the longest one, 0 if `text` is empty",
            ),
            variant(
                ("abcab",),
                "abc",
                f="longest_distinct_part",
                rule="hold no character twice",
                result="best",
                bad="best",
                fits="text[end] not in text[start:end]",
                what='the longest one, the leftmost if several tie, `""` if `text` is empty',
            ),
            variant(
                ("abacc",),
                "aba",
                f="longest_two_letter_part",
                rule="hold at most two different characters",
                result="best",
                bad="best",
                fits="len(set(text[start : end + 1])) <= 2",
                what='the longest one, the leftmost if several tie, `""` if `text` is empty',
            ),
        ],
        edges=(("",), ("aaa",), ("abba",)),
    ),
    Family(
        "line_report",
        "Write a program that reads lines of text until the end of the input and prints $what. "
        "Words are separated by one or more spaces; a line may be empty, and each ends with a line break.",
        """
import sys

rows = sys.stdin.read().splitlines()
$body
""",
        {"$body": "$bad"},
        lambda rng: lines(
            *(rng.choice(["", sentence(rng, 1, 5), sentence(rng, 2, 5)]) for _ in range(rng.randint(2, 5)))
        ),
        [
            variant(
                "a b\n\nc\n",
                "3 3",
                body="print(len(rows), sum(len(row.split()) for row in rows))",
                bad='print(len(rows), sum(row.count(" ") + 1 for row in rows))',
                what="one line with the number of lines (empty ones included) and the number of words, separated by a "
                "space",
            ),
            variant(
                "a b\n\nc\n",
                "c\n\nb a",
                body='for row in rows[::-1]:\n    print(" ".join(row.split()[::-1]))',
                bad='for row in rows:\n    print(" ".join(row.split()[::-1]))',
                what="the lines in reverse order, in each line the words in reverse order with single spaces between "
                "them (an empty line for an empty one)",
            ),
            variant(
                "ab c\n\nd\n",
                "1: ab c\n2: d",
                body="filled = [row for row in rows if row.split()]\n"
                'for number, row in enumerate(filled, 1):\n    print(f"{number}: {row}")',
                bad='for number, row in enumerate(rows, 1):\n    print(f"{number}: {row}")',
                what="each line that has a word, unchanged, after its number, a colon and a space, where only these "
                "lines are numbered, from 1 (nothing at all if there is no such line)",
            ),
        ],
        edges=("\n", "one\n", "a  b   c\n\n\nd e\n"),
        stdio=True,
    ),
    Family(
        "word_table",
        "Write a program that reads all words of the input (separated by spaces or line breaks, at least one word) and "
        "prints $what. Upper and lower case are $case.",
        """
import sys
from collections import Counter

counts = Counter(sys.stdin.read()$fold.split())
for word, count in sorted(counts.items(), key=lambda item: $key):
    $show
""",
        {"$key": "$bad"},
        lambda rng: lines(*(sentence(rng, 2, 6) for _ in range(rng.randint(1, 3)))),
        [
            variant(
                "b a b\nA a b\n",
                "b 3\na 2\nA 1",
                fold="",
                case="different, capitals coming first in the alphabet",
                key="(-item[1], item[0])",
                bad="-item[1]",
                show='print(f"{word} {count}")',
                edges=("b a\n",),
                what="for each different word a line with the word, a space and its number of occurrences, the most "
                "frequent first, words of equal frequency in alphabetical order",
            ),
            variant(
                "b a b\nA\n",
                "a: **\nb: **",
                fold=".lower()",
                case="alike, and words are printed in lower case",
                key="item[0]",
                bad="(-item[1], item[0])",
                show="""print(f"{word}: {'*' * count}")""",
                what="for each different word, in alphabetical order, a line with the word, a colon, a space and as "
                "many asterisks as it has occurrences",
                edges=("b a B c\n",),
            ),
            variant(
                "b a b c\n",
                "a\nc",
                fold="",
                case="different, capitals coming first in the alphabet",
                key="item[0]",
                bad="-ord(item[0][0])",
                show="if count == 1:\n        print(word)",
                what="the words that occur exactly once, in alphabetical order, one a line (nothing if there are none)",
            ),
        ],
        edges=("a\n", "x x x\n"),
        stdio=True,
    ),
]
