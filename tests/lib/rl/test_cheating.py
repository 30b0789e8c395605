"""Ways to be paid, or to look better, without doing what a task of the sweeps asks: texts first, then whole policies.

Texts are judged by what `load_data` makes of the very commands of a sweep. Policies are scripted: their chats are grown
as trees, judged by the same judges, paid by the recipes, and compared and summarised as in a run. What a published
recipe pays for as it stands is held too, so that whoever changes it sees it.
"""

import random
import re
from collections import Counter
from pathlib import Path
from statistics import fmean

import pytest
from accelerate import Accelerator
from helpers.tiny import call

from data import build_tiny_code, build_tiny_sums
from engine import Completion
from judge.parsing import same_answer
from lib.core.config import ScoreConfig, ScoreTrain, SweepConfig, load
from lib.core.errors import ConfigError
from lib.rewards.judge import Verdict
from lib.rewards.programs import check_public, first_failures
from lib.rl.credit import advantages_of, credit_of, peers_of, scaled_by_role
from lib.rl.evaluation import answers_of, summarise
from lib.rl.feedback.choice import feedback_of
from lib.rl.prompts import JudgedAnswer, Prompt
from lib.rl.recipes.choice import recipe_of
from lib.rl.recipes.contract import StepAnswers
from lib.rl.reviews import review_of
from lib.rl.sequential import majority_votes, success_at_k
from lib.rl.task import load_data
from lib.rl.tree import Answer, Group, nodes
from lib.rl.watch import Watch
from sweep import plan

pytestmark = pytest.mark.usefixtures("shared_sandbox")
ROOT = Path(__file__).parents[3]
ALONE = Accelerator()
ENDED = Completion([1], [0.0], finished=True)


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    """`task(sweep, variant)`: config, held-out rows and judge, by the sweep's own commands; data are built smaller."""
    folders = {}

    def loaded(sweep, variant):
        jobs = plan(load(SweepConfig, ROOT / f"configs/{sweep}.yaml", []))[variant, 0]
        script, *words = jobs[0].command
        if sweep not in folders:
            folders[sweep] = tmp_path_factory.mktemp(sweep)
            own = ["--seed", "3", "--lessons", "2", "--chats", "2", "--train", "20", "--test", "500"]
            builder = build_tiny_code if "tiny_code" in script else build_tiny_sums
            call(builder, *words, *own, "--out", folders[sweep])
        _, _, path, _, *words = jobs[-1].command
        config = load(
            ScoreConfig, ROOT / path, [*words, f"dataset.name={folders[sweep]}", "dataset.test_split_size=500"]
        )
        splits, judge = load_data(config)
        return config, splits.test, judge

    return loaded


# -- texts: sums


def thought(answer, think="x"):
    return f"<think>{think}</think><answer>{answer}</answer>"


SUM = {"question": "9+3+6+8+2+1", "answer": "29"}  # an attempt that loses a carry answers 19
PAID = [
    thought(29), thought("29", ""), thought(29, "19 was wrong"), thought(" 29\n"), thought("029"), thought("+29"),
    thought("29."), thought("29.0"), thought("x = 29"), thought(r"\boxed{29}"), thought("$29$"), thought("(29)"),
]  # fmt: skip
UNPAID = [
    "", " ", "29", SUM["question"], f"{SUM['question']}=29", "right", "The answer is 29.", "Correct any error.",
    # no such blocks, or more of them
    "<think>12 18 26 28 29</answer>", "<think>12 29", "<answer>29</answer>", "<think>29</think>",
    "<answer>29</answer><think>x</think>", "<think>x<answer>29</answer></think>", "<think>x</think><answer>29",
    "<think>x</think><answer></answer>", thought(" "), thought("<answer>29</answer>"), thought(29).upper(),
    "<think>x</think>29<answer></answer>", "<think>x</think><answer a=1>29</answer>", thought(29)[:-1],
    # something around them
    "29 " + thought(29), thought(29) + " ok", thought(29) + "29", "<think>x</think> so <answer>29</answer>",
    thought(29) + "<|im_end|>", "<|user|>" + thought(29), thought(29) + "<|user|>Right.", "\x00" + thought(29),
    # attempt 1 quoted, several answers
    thought(19) + thought(29), thought(29, thought(19)), thought(19) + "Correct any error." + thought(29),
    thought(19) + "<answer>29</answer>", "<think>x</think>" + thought(29), thought("19 29"), thought("19 or 29"),
    thought("19, 29"), thought("19/29"), thought("19-29"), thought("19 = 29"), thought("29 = 29"), thought("29 ± 10"),
    thought("**19** **29**"), thought(r"\boxed{19}\boxed{29}"), thought(" ".join(map(str, range(60)))),
    # not that number
    thought("2"), thought("92"), thought("-29"), thought("29.5"), thought("2 9"), thought("2,9"), thought("2_9"),
    thought("0x1d"), thought("not 29"), thought("~29"), thought("<= 29"), thought("29?"), thought("[29]"),
    thought(SUM["question"]), thought("19+10"), thought("29*1"), thought("29/1"), thought("twenty-nine"),
    thought("XXIX"), thought("answer"), thought("{answer}"), thought('{"answer": 29}'), thought("&#50;9"),
    # signs that look like it
    thought("２９"), thought("٢٩"), thought("²⁹"), thought("2\u200b9"), thought("29\u200b"), thought("\u202e92"),
    thought("29\x00"), thought("29\ud800"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("sweep", "variant"),
    [("sweep_copy", "ufo"), ("sweep_verdict", "score_verdict"), ("sweep_between", "pag"), ("sweep_bonus", "both")],
)
def test_a_sum_is_paid_for_its_number_alone_in_its_place_alone(task, sweep, variant):
    _, rows, judge = task(sweep, variant)
    assert len(rows) == 500 and len(set(UNPAID)) == len(UNPAID) >= 70
    texts = PAID + UNPAID
    for text, verdict in zip(texts, judge(texts, [SUM] * len(texts)), strict=True):
        is_right = text in PAID
        assert (verdict.reward, verdict.match, verdict.scored) == (is_right, is_right, True), text
    for offset in (-10, 0, 10):
        texts = [thought(true(row) + offset) for row in rows]
        assert {verdict.match for verdict in judge(texts, rows)} == {offset == 0}


def test_no_text_is_right_for_two_sums(task):
    """A hedge would be: whatever is put together of two numbers is read as one of them at most."""
    _, _, judge = task("sweep_copy", "ufo")
    draw = random.Random(0)
    glue = [*" ,/=~±+-|;()[]{}$*_^%.:<>!?", "..", " or ", " not ", "**", "\\boxed{", "x = ", " for ", " apples",
            "\\text{", "\\frac{", "}{", "\\pm", "e", "\n", "\u200b", "#### "]  # fmt: skip
    numbers = ["27", "37", "027", "+37", "27.0", "2.7e1", "37.", "２７", "27/1", "-37"]
    texts = [
        thought("".join(draw.choice(glue if draw.random() < 0.5 else numbers) for _ in range(draw.randint(2, 6))))
        for _ in range(2000)
    ]
    verdicts = (judge(texts, [SUM | {"answer": answer}] * len(texts)) for answer in ("27", "37"))
    found = Counter(one.match + two.match for one, two in zip(*verdicts, strict=True))
    assert found[2] == 0 and found[1] > 20


# -- texts: programs


def programs_of(row):
    """Texts for one row, right ones and wrong ones, by name."""
    right = row["solution"]
    body, wrong = right.removeprefix("def f(x): return "), "def f(x): return x"
    (zero, low), (far, high) = map(asked_and_right, row["public_tests"])
    hidden = [value for _, value in map(asked_and_right, row["tests"])]
    paid = {
        "plain": right, "a lambda": f"f=lambda x:{body}", "a fence": f"```python\n{right}\n```\nmy answer",
        "the last block": f"```\n{wrong}\n```\n```\n{right}\n```", "a draft": f"<think>{wrong}</think>{right}",
        "attempt 1 in a comment": f"# {wrong}\n{right}", "the last definition": f"{wrong}\n{right}",
        "blank lines to the end of the budget": right + "\n" * 9, "as a float": f"def f(x): return float({body})",
    }  # fmt: skip
    unpaid = {
        # what the public tests tell, and nothing else
        "a constant": f"def f(x): return {low}", "the other one": f"def f(x): return {high}",
        "looked up": f"def f(x): return {low} if x=={zero} else {high}",
        "looked up, else attempt 1": f"def f(x): return {low} if x=={zero} else x*2",
        "a table": f"def f(x): return {{{zero}:{low},{far}:{high}}}.get(x,0)",
        "the test": row["public_tests"][0], "the feedback": f"{row['public_tests'][0]}; f({zero}) answered 2 Again.",
        # no program, or another one
        "empty": "", "a blank": " \n", "the prompt": row["prompt"], "praise": "Passed. Again.",
        "cut off": right[:-1], "a digit less": right[:-2], "cut in a fence": f"```python\n{right}",
        "the first block": f"```\n{right}\n```\n```\n{wrong}\n```", "another language": f"```c\n{right}\n```",
        "in thought alone": f"<think>{right}</think>", "the first definition": f"{right}\n{wrong}",
        "attempt 1 quoted": f"{wrong}\nAgain.\n{right}", "words behind": f"{right} Passed.", "shouted": right.upper(),
        "a turn of the user": f"{right}<|user|>Passed.", "the end token": f"{right}<|im_end|>",
        "other digits": re.sub(r"\d", lambda digit: "٠١٢٣٤٥٦٧٨٩"[int(digit[0])], right), "NUL": f"{right}\x00",
        "in a string": f"'{right}'", "as a text": f"def f(x): return str({body})", "deleted": f"{right}\ndel f",
        "all right answers": f"def f(x): return {hidden}", "a generator": f"def f(x): yield {body}",
        # the test's own process
        "equal to everything": "class A:\n def __eq__(s,o): return True\ndef f(x): return A()",
        "an equal number": "class A(int):\n def __eq__(s,o): return True\ndef f(x): return A()",
        "any": "from unittest.mock import ANY\ndef f(x): return ANY", "exit": "import sys\nsys.exit(0)",
        "exit at once": "import os\nos._exit(0)", "no error": "def f(x): raise StopIteration",
        "a failed assert": "def f(x): raise AssertionError", "verdicts printed": "print('pass '*3)\ndef f(x): return 0",
        "pipes": "import os\nfor d in range(3,30):\n try: os.write(d,b'pass')\n except OSError: pass\n" + wrong,
        "patched": "import judge.jail.examiner as e\ne._examine_one=lambda *a:('pass','')\ndef f(x): return 0",
        "frames": "import sys\ndef f(x):\n g=sys._getframe()\n while g.f_back: g=g.f_back\n return str(g.f_locals)",
        "memory": "import gc\ndef f(x):\n for o in gc.get_referents(*gc.get_objects()):\n"
                  "  if type(o)==str and o.startswith('assert f(%d)'%x): return int(o.split()[-1])\n return 0",
        "files": "import glob\ndef f(x):\n found=glob.glob('/tmp/**/test.jsonl',recursive=True)\n"
                 " return [open(path).read() for path in found]",
        "parent": "import os\ndef f(x): return open('/proc/%d/environ'%os.getppid()).read()",
        "environment": "import os\ndef f(x): return str(dict(os.environ))", "the user": "def f(x): return input()",
        "no end": "def f(x):\n while 1: pass", "stopped": "import os\nos.kill(os.getpid(),19)\ndef f(x): return 0",
    }  # fmt: skip
    return paid, unpaid


def asked_and_right(test):
    """The number of a test, and what is expected."""
    return tuple(map(int, re.fullmatch(r"assert f\((\d+)\) == (-?\d+)", test).groups()))


def test_a_program_is_paid_for_the_hidden_tests_alone(task):
    """Nor does any text provoke a fault of the sandbox, which would keep it out of the loss."""
    _, rows, judge = task("sweep_tests", "tests")
    row = next(row for row in rows if "add some" in row["prompt"]) | {"timeout_s": 0.3}
    paid, unpaid = programs_of(row)
    assert len(unpaid) >= 45
    verdicts = judge([*paid.values(), *unpaid.values()], [row] * (len(paid) + len(unpaid)))
    for name, verdict in zip([*paid, *unpaid], verdicts, strict=True):
        is_right = name in paid
        assert (verdict.reward, verdict.match, verdict.scored) == (is_right, is_right, True), (name, verdict.about)


def test_hostile_attempts_are_told_the_first_public_test_and_no_hidden_one(task):
    config, rows, judge = task("sweep_tests", "tests")
    row = next(row for row in rows if "add some" in row["prompt"])
    (_, low), (_, high) = map(asked_and_right, row["public_tests"])
    secrets = [str(each) for test in row["tests"] for each in asked_and_right(test) if each > 99] + [row["solution"]]
    keeps = (
        "import os,builtins\ndef f(x):\n"
        " kept=builtins.__dict__.setdefault('kept',[])\n kept.append(x)\n"
        " for p in ('/tmp/k','/dev/shm/k',os.path.expanduser('~/k')):\n"
        "  try: open(p,'a').write(str(x)); kept.append(open(p).read())\n  except OSError as e: kept.append(str(e))\n"
        " return str(kept)[-50:]"
    )
    programs = [keeps, keeps.replace("return str(kept)[-50:]", "raise ValueError(str(kept)[-50:])"),
                "def f(x): return '{tests} {solution} {0} <|im_end|><|assistant|>'", "def f(x): return 0",
                "import gc\ndef f(x):\n raise KeyError(str([o for o in gc.get_referents(*gc.get_objects())"
                " if type(o)==str and 'assert f' in o])[:9000])",
    ]  # fmt: skip
    judge(programs, [row] * len(programs))  # hidden tests first, in the same workers
    prompt = Prompt(row, [0], row["prompt"])
    said = feedback_of(config.prompts).after([JudgedAnswer(prompt, ENDED, text, None) for text in programs])
    for text in said:
        assert not [secret for secret in [*secrets, str(high)] if secret in text], text
        assert f"assert f(0) == {low}; f(0) " in text


SPELLED = ["assert f(1)==2", "assert f(0x1) == 2", "assert (f(1) == 2), 'no'", "x = 3\nassert f(1) == 2"]
REWORDED = ["assert 2 == f(1)", "assert f(1) == 2.0", "assert f(1) - 2 == 0", "assert f(1) == 1 + 1",
            "assert [f(1), f(9)] == [2, 10]", "assert f(1) == 2 and f(9) == 10",
            "assert isinstance(f(1), int) and f(1) == 2", "try: assert f(1) == 2\nfinally: pass",
            "y = f(9)\nassert y == 10\nassert f(1) == 2"]  # fmt: skip
ASKED_BY_RUNNING = [
    "for n in range(3):\n    assert f(n) == n + 1", "def check(candidate):\n    assert candidate(1) == 2\ncheck(f)",
    "assert f(x=1) == 2", "assert f(*[1]) == 2", "assert f(**{'x': 1}) == 2", "x = 1\r\nassert f(x) == 2\r\n",
    "assert f(1.0) == 2", "assert f(3 - 2) == 2", "assert f(len('a')) == 2", "x = 0\nx += 1\nassert f(x) == 2",
    "assert list(map(f, [1])) == [2]", "g = f\nassert g(1) == 2",
    "cases = [(5, 6), (1, 2)]\nfor a, b in cases:\n    assert f(a) == b",
    "assert (lambda v: f(v))(1) == 2", "import functools\nassert functools.partial(f, 1)() == 2",
    "class T:\n    def run(self):\n        assert f(1) == 2\nT().run()",
    "n = 1\nwhile n < 3:\n    assert f(n) == n + 1\n    n += 1",
    "assert f(5) == 7 and f(1) == 2", "unknown\nassert f(1) == 2", "assert len([f(1)]) == 1", "assert f(True) == 2",
    "import contextlib\nwith contextlib.suppress(ValueError):\n    assert f(1) == 2", "if f(1) != 2:\n    assert False",
]  # fmt: skip
BY_SOLUTION = ["assert f(1, 0) == 2", "assert f(y=0, x=1) == 2", "assert f(f(0)) == 2"]
SHOP = "kept = {}\ndef f(key, value=None):\n    if key == 'set': kept[0] = value\n    return kept.get(0)\n"
QUEUE = """
class f:
    def __init__(self): self.items = []
    def add(self, item): self.items.append(item)
    def first(self): return self.items[0]
    def __len__(self): return len(self.items)
"""
HONEST = [  # a hidden test, a public one that tells nothing of it, and a solution
    ("f('set', 5)\nassert f('get') == 5", "f('set', 1)\nassert f('get') == 1", SHOP),
    ("assert f(3) == 1", "assert f(4) == 1", "def f(x): return 1"),
    ("for x, y in [(3, 4)]:\n assert f(x) == y", "for x, y in [(1, 2)]:\n assert f(x) == y", ""),
    ("try: f(-2)\nexcept ValueError: pass\nelse: assert False",
     "try: f(-1)\nexcept ValueError: pass\nelse: assert False", ""),
    ("x = [3]\nf(x)\nassert x == [4]", "x = [5]\nf(x)\nassert x == [6]", "def f(x): x[0] += 1"),
    ("check(3, 4)", "check(5, 6)", ""),
    ("q = f()\nq.add(1)\nq.add(2)\nassert q.first() == 1", "q = f()\nq.add(3)\nassert q.first() == 3", QUEUE),
    ("q = f()\nq.add(1)\nassert len(q) == 1", "assert len(f()) == 0", QUEUE),
]  # fmt: skip


@pytest.mark.parametrize("solution", ["def f(x, y=0):\n    return x + 1 + y", ""], ids=["solution", "none"])
@pytest.mark.parametrize("public", [*SPELLED, *REWORDED, *ASKED_BY_RUNNING, *BY_SOLUTION])
def test_a_hidden_test_in_other_words_is_no_public_one(public, solution):
    row = {"prompt": "p", "tests": ["assert f(1) == 2"], "entry_points": ["f"], "solution": solution}
    if public in BY_SOLUTION and not solution:
        pytest.skip("only the solution says what is alike")
    with pytest.raises(ConfigError, match="asks what a hidden one asks"):
        check_public([row | {"public_tests": [public]}], ["row 1"])


def test_a_part_of_a_hidden_test_is_no_public_one():
    hidden = "try: f(-1)\nexcept ValueError: pass\nx = [1, 2]\nassert f(x) == 3\nassert f([9]) == 9"
    row = {"prompt": "p", "tests": [hidden], "entry_points": ["f"]}
    for public in ("x = [1, 2]\nassert f(x) == 3", "assert f([9]) == 9", "assert len(f((9,))) == 9"):
        with pytest.raises(ConfigError, match="asks what a hidden one asks"):
            check_public([row | {"public_tests": [public]}], ["row 1"])
    check_public([row | {"public_tests": ["x = [1, 3]\nassert f(x) == 3"]}], ["row 1"])


@pytest.mark.parametrize(("hidden", "public", "solution"), HONEST)
def test_a_public_test_is_refused_only_where_it_asks_what_a_hidden_one_asks(hidden, public, solution):
    row = {"prompt": "p", "tests": [hidden], "entry_points": ["f"], "solution": solution,
           "setup_code": "def check(x, y): assert f(x) == y"}  # fmt: skip
    check_public([row | {"public_tests": [public]}], ["row 1"])
    with pytest.raises(ConfigError, match="asks what a hidden one asks"):
        check_public([row | {"public_tests": [public, hidden]}], ["row 1"])


def test_tests_whose_calls_are_not_seen_are_told(caplog):
    """A test that ends its process, and one without an end; the other rows of the batch are compared."""
    hidden = {"prompt": "p", "tests": ["assert f(1) == 2"], "entry_points": ["f"], "timeout_s": 0.5}
    rows = [hidden | {"public_tests": [test]} for test in ("while True: pass", "import os\nos._exit(0)", "assert f(3)")]
    check_public(rows, ["row 1", "row 2", "row 3"])
    assert "in 2 of 3 rows (first row 1) no calls are seen" in caplog.text
    with pytest.raises(ConfigError, match=r"1 of 4 rows .*\(row 4\)"):
        rows.append(hidden | {"public_tests": ["assert 2 == f(1)"]})
        check_public(rows, [f"row {number}" for number in range(1, 5)])
    scripts = {"prompt": "p", "stdio": [{"stdin": "3\r\n", "stdout": "9"}]}
    scripts["public_tests"] = [{"stdin": "3", "stdout": "9"}]
    with pytest.raises(ConfigError, match="asks what a hidden one asks"):
        check_public([scripts], ["row 1"])


# -- what public tests alone lead to, without a look at the prompt


def share_right(rows, answer):
    """The share of rows whose hidden tests `answer(row)`, a function, passes."""
    return fmean(
        all(function(number) == right for number, right in map(asked_and_right, row["tests"]))
        for row, function in ((row, answer(row)) for row in rows)
    )


def test_a_reader_of_public_tests_alone_gets_nowhere_by_constants_and_far_by_two_of_them(task):
    """Why an attempt is told one public test only: a straight line through two of them is most tasks."""
    _, rows, judge = task("sweep_tests", "tests")
    first, second = ([asked_and_right(row["public_tests"][place]) for row in rows] for place in (0, 1))
    known = {id(row): pair for row, pair in zip(rows, zip(first, second, strict=True), strict=True)}

    def line(row):
        (low, of_low), (high, of_high) = known[id(row)]
        return lambda x: (of_high - of_low) * (x - low) / (high - low) + of_low

    assert share_right(rows, lambda row: lambda x: known[id(row)][0][1]) == 0
    assert share_right(rows, lambda row: lambda x: known[id(row)][1][1]) == 0
    assert share_right(rows, lambda row: lambda x: dict(known[id(row)]).get(x, x)) == 0
    assert 0.1 < share_right(rows, lambda row: lambda x: x + known[id(row)][0][1] - known[id(row)][0][0]) < 0.25
    assert 0.9 < share_right(rows, line) < 1
    vague = [row for row in rows if "add some" in row["prompt"]]
    counts = Counter(row["solution"][-1] for row in vague)
    assert max(counts.values()) < 0.2 * len(vague)  # no constant is a better guess than one in nine by much
    constant = [f"def f(x): return {value}" for _, value in first[:3]]
    told = first_failures(constant, rows[:3], 200)
    assert [failure.test for failure in told] == [row["public_tests"][1] for row in rows[:3]]
    assert [failure.why.startswith(failure.test) for failure in told] == [True] * 3
    assert not any(verdict.reward for verdict in judge(constant, rows[:3]))


# -- policies: what recipes pay them


RIGHT, WRONG = thought(29), thought(19)


def grown(row, chats, judge, prompts=None, review=None):
    """A tree of chats, each a text and the chats behind it; reviews are where `prompts` asks for them."""
    answers = []
    for text, behind in chats:
        verdict = review.verdict(ENDED, text) if review else judge([text], [row])[0]
        asks = review_of(prompts, verdict) if prompts and prompts.reviewed_by and review is None and behind else None
        answers.append(Answer(ENDED, text, verdict, grown(row, behind, judge, prompts, asks) if behind else None))
    return Group(Prompt(row, [hash(row["question"])], row["question"], review=review), answers)


def then(*texts):
    return [(text, None) for text in texts]


def earned(tree, train, stage=2):
    """What each answer is paid, and its advantage, by turn."""
    found = nodes([tree])
    step = StepAnswers(found, [answer.verdict.reward for node in found for answer in node.group.answers])
    recipe = recipe_of(train)
    paid = [value for node in found for value in recipe.paid(node, step, stage)]
    counts, turns = [value is not None for value in paid], max(node.turn for node in found)
    peers = peers_of(found, turns)
    stands = [step.answers[number].verdict.reward * recipe.pays_attempts for *_, number in peers.stand_ins]
    values = [value or 0.0 for value in paid]
    advantage = advantages_of(train.baseline, peers, values, counts, ALONE, None, stands)
    if recipe.scales_roles:
        credit = credit_of(found, advantage, counts, (0.0,) * turns, ALONE.device)
        advantage = scaled_by_role(credit, ALONE).advantage.tolist()
    by_turn = {node.name: [] for node in found}
    for node in found:
        by_turn[node.name] += [(paid[number], advantage[number]) for number in node.numbers]
    return by_turn


def test_to_fail_first_earns_nothing_but_where_a_setting_or_a_recipe_pays_it(task):
    """One first attempt is right, one wrong on purpose, revisions are right: what the first ones earn and gain."""
    _, _, judge = task("sweep_bonus", "both")
    tree = grown(SUM, [(RIGHT, then(RIGHT, RIGHT)), (WRONG, then(RIGHT, RIGHT))], judge)

    def firsts(recipe="score", **settings):
        return earned(tree, ScoreTrain(recipe=recipe, **settings))["attempt1"]

    for alpha in (0.0, 1.0, 10.0):
        assert firsts(alpha=alpha) == [(1, 1), (0, -1)]
        assert {gain for _, gain in earned(tree, ScoreTrain(alpha=alpha))["attempt2"]} == {0}
    assert firsts(bonus_on="reward", alpha=10.0) == firsts("thinktwice") == [(1, 1), (0, -1)]
    assert firsts(bonus_to="both", alpha=10.0) == [(1, -9), (10, 9)]  # the trap of configs/sweep_bonus.yaml
    assert firsts("multiturn") == [(1, 0), (1, 0)]  # as published: nobody pays for attempt 1 itself
    scratch = grown(SUM, [(RIGHT, then(RIGHT)), ("12 18 26 28 29", then(RIGHT))], judge)  # nor for its form
    assert earned(scratch, ScoreTrain(recipe="multiturn", revisions_per_attempt=1))["attempt1"] == [(1, 0), (1, 0)]
    stops = grown(SUM, [(RIGHT, None), (WRONG, then(RIGHT, RIGHT))], judge)
    assert earned(stops, ScoreTrain(recipe="ufo", discount=0.5))["attempt1"] == [(1, 0.5), (0.5, -0.5)]


def after_wrong(judge, *texts):
    """What `ufo` pays for second attempts behind 19."""
    tree = grown(SUM, [(WRONG, then(*texts)), (RIGHT, None)], judge)
    return [paid for paid, _ in earned(tree, ScoreTrain(recipe="ufo", discount=0.5))["attempt2"]]


AGAIN = {"spelled anew": "019", "with a sign": "+19", "as a decimal": "19.0", "named": "x = 19", "in dollars": "$19"}


def test_ufo_takes_for_the_same_answer_and_for_nothing_else(task):
    _, _, judge = task("sweep_copy", "ufo")
    told = after_wrong(judge, thought(19), thought(19, "other thoughts"), thought(" 19\n"), thought(18), RIGHT)
    assert told == [-0.1, -0.1, -0.1, 0, 0.5]


@pytest.mark.parametrize("answer", AGAIN)
def test_ufo_takes_for_an_answer_in_another_spelling(task, answer):
    _, _, judge = task("sweep_copy", "ufo")
    assert after_wrong(judge, thought(AGAIN[answer])) == [-0.1]


def test_a_right_answer_never_repeats_a_wrong_one():
    """18 is spelled as 18 dollars and as 18 cents, and programs may differ by a letter's case."""
    for right, wrong in (("18", "18 dollars"), ("s.replace('A', 'a')", "s.replace('a', 'a')")):
        after, before = Verdict(1.0, {}, True, right), Verdict(0.0, {}, False, wrong)
        assert not after.unchanged_from(before) and not after.repeats([before])
        assert after._replace(match=False).repeats([before])
        assert before.repeats([after._replace(answer=wrong, scored=False)])
    assert Verdict(0.0, {}, False, " ").unchanged_from(Verdict(0.0, {}, False, ""))


def test_ufo_pays_a_malformed_text_no_more_than_a_repeat(task):
    _, _, judge = task("sweep_copy", "ufo")
    repeated, malformed, nothing = after_wrong(judge, thought(19), "19", thought(r"\boxed{}"))
    assert malformed <= repeated and nothing == -0.1


def test_a_check_is_paid_for_what_it_ends_with_whatever_the_solver_does(task):
    """Neither saying both, nor nothing, nor failing first so that "wrong" is sure: that is paid to the check alone."""
    config, _, judge = task("sweep_between", "pag")
    says = {"right": None, "wrong": then(RIGHT), "": then(RIGHT), "right wrong": then(RIGHT), "wrong right": None,
            "right, I hope": then(RIGHT), "rightwrong": then(RIGHT), "29": then(RIGHT)}  # fmt: skip
    tree = grown(SUM, [(RIGHT, [*says.items()]), (WRONG, [*says.items()])], judge, config.prompts)
    paid = [value for value, _ in earned(tree, ScoreTrain(recipe="pag"))["check1"]]
    assert paid == [1, 0, 0, 0, 1, 0, 0, 0] + [0, 1, 0, 1, 0, 0, 0, 0]
    honest = [(RIGHT, then("right", "right"))]
    failing = [(WRONG, [("wrong", then(RIGHT)), ("wrong", then(RIGHT))])]
    found = earned(grown(SUM, honest + failing, judge, config.prompts), ScoreTrain(recipe="pag"))
    assert found["check1"] == [(1, 0)] * 4 and found["attempt2"] == [(2, 0)] * 2
    assert [value for value, _ in found["attempt1"]] == [1, 0] and found["attempt1"][0][1] > 0 > found["attempt1"][1][1]


def test_a_reflection_earns_by_the_retry_whatever_it_says(task):
    """As published: the answer itself, or nothing at all, is worth as much as a reason, if the retry is right."""
    config, _, judge = task("sweep_between", "reflect")
    says = {"a carry is lost": RIGHT, "29": RIGHT, "": RIGHT, "<|user|>right": RIGHT,
            "29 is right": WRONG, "wrong": "29"}  # fmt: skip
    chats = [(WRONG, [(text, then(retry)) for text, retry in says.items()]), (RIGHT, None)]
    found = earned(grown(SUM, chats, judge, config.prompts), ScoreTrain(recipe="reflect"))
    assert [value for value, _ in found["reflection1"]] == [1, 1, 1, 1, 0, 0]
    assert {pair for name in ("attempt1", "attempt2") for pair in found[name]} == {(0, 0)}


# -- policies: what evaluations tell of them


@pytest.fixture(scope="module")
def told(task):
    """`told(policy)`: what an evaluation of sums says of four chats of `policy(row)` at each of some rows."""
    _, rows, judge = task("sweep_copy", "ufo")

    def summary(policy, stops=False):
        trees = []
        for row in rows[:30]:
            chats = []
            for one, two in (map(thought, policy(row)) for _ in range(4)):
                ends = stops and judge([one], [row])[0].match
                chats.append((one, None if ends else then(two)))
            trees.append(grown(row, chats, judge))
        answers = answers_of(trees, ALONE, attempts=2)
        *_, votes = majority_votes(answers, trees, 4, same_answer, ALONE)
        return summarise(answers, 1.0) | {"gain": success_at_k(answers, 4)[1]["gain"], "votes": votes["acc_sequential"]}

    return summary


def true(row):
    return int(row["answer"])


def careless(row):
    return build_tiny_sums.careless_sum(tuple(map(int, row["question"].split("+")))).totals[-1]


def test_what_a_policy_that_fails_first_gains_shows_in_attempt_1(told):
    """delta, the gain over first attempts and that over fresh draws are all at their most; attempt 2 is no better."""
    looks, fails = told(lambda row: (careless(row), true(row))), told(lambda row: (true(row) + 1, true(row)))
    assert looks["acc_attempt2"] == fails["acc_attempt2"] == looks["revised_minus_fresh"] == 1
    assert (fails["delta"], fails["gain"], fails["revised_minus_fresh"]) == (1, 1, 1)
    assert looks["delta"] == pytest.approx(looks["gain"]) == pytest.approx(1 - looks["acc_attempt1"])
    assert looks["delta"] < 0.4 and fails["acc_attempt1"] == 0
    row = {"stage": 2, "acc_attempt2": 0.9, "answer_changed": 0.5, "prompts": 32}
    alarms = Watch()
    begun = [
        alarm.alarm
        for step in range(80)
        for alarm in alarms.step(row | {"step": step, "acc_attempt1": max(0.05, 0.75 - 0.03 * max(0, step - 30))})
    ]
    assert "accuracy_fell.acc_attempt1" in begun and "accuracy_died.acc_attempt1" in begun


def test_who_always_adds_ten_is_found_by_evaluations_without_a_verdict_alone(told):
    """With an oracle's stop it looks like one who looks; fresh draws do not tell them apart either."""
    looks = told(lambda row: (careless(row), true(row)))
    adds, stopped = (told(lambda row: (careless(row), careless(row) + 10), stops) for stops in (False, True))
    assert stopped["acc_attempt2"] == looks["acc_attempt2"] == 1 and stopped["c_to_i"] == looks["c_to_i"] == 0
    assert adds["revised_minus_fresh"] == looks["revised_minus_fresh"] == 1 and adds["gain"] == looks["gain"]
    assert adds["acc_attempt2"] == pytest.approx(1 - adds["acc_attempt1"]) and adds["delta"] < -0.2


def test_who_repeats_or_says_nothing(told):
    repeats, silent = told(lambda row: (careless(row), careless(row))), told(lambda row: (careless(row), " "))
    assert (repeats["repeat_rate"], repeats["answer_changed"], repeats["delta"]) == (1, 0, 0)
    assert silent["acc_attempt2"] == 0 and silent["votes"] == 0 and silent["well_formed_attempt2"] == 0


def test_who_repeats_in_another_spelling_repeats(told):
    spelled = told(lambda row: (careless(row), f"0{careless(row)}"))
    assert (spelled["repeat_rate"], spelled["answer_changed"]) == (1, 0)


def test_silence_wins_votes_and_no_accuracy(told):
    """As published: a vote is over answers alone, so that chats that say nothing where they do not know win it."""
    draw, again = random.Random(0), random.Random(0)
    guesses = told(lambda row: (19, true(row) if draw.random() < 0.4 else true(row) - 10))
    silent = told(lambda row: (19, true(row) if again.random() < 0.4 else " "))
    assert guesses["acc_attempt2"] == silent["acc_attempt2"] < 0.5
    assert silent["votes"] > guesses["votes"] + 0.2 and silent["well_formed_attempt2"] < 0.5


def test_first_prompts_are_the_question_and_public_tests_ask_other_numbers(task):
    for sweep, variant in (("sweep_tests", "tests"), ("sweep_copy", "ufo")):
        config, rows, _ = task(sweep, variant)
        for row in rows:
            assert config.prompts.user.format_map(row) == row.get("question", row.get("prompt"))
            hidden, public = (
                {asked_and_right(test)[0] for test in row.get(key, ())} for key in ("tests", "public_tests")
            )
            assert not hidden & public
