"""The page as a reader sees it: driven in a real browser, which must meet no error and ask no network."""

import json
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import yaml
from conftest import fewer
from helpers.browser import PROGRAM, Browser

from pages.alarms import chart_of
from pages.blocks import Charts, PageSection
from pages.live import serve
from pages.page import render_runs
from pages.rollouts import rollouts_of
from pages.run_folder import read_run

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here: install Debian's package chromium")
TESTS, ROOT = Path(__file__).parents[1:3]
CONTRAST = TESTS / "helpers/contrast.js"
LINES = "[...document.querySelectorAll('.line .title')].map((each) => each.textContent)"
COUNT = "document.querySelector('.count').textContent"
HOSTILE = {
    "script": "</script><script>document.title = 'taken'</script><img src=http://x.invalid/ onerror=alert(1)>",
    "quotes": "'\"`--><!-- </pre> &lt; {{ 7*7 }} ${7}",
    "bidi": "safe \u202e\u2066 txet \u2069 \x00\x1b[31m",
    "alone": "half \ud800 of a pair",
}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    found = Browser(tmp_path_factory.mktemp("browser"))
    yield found
    found.close()


@pytest.fixture
def clean(browser):
    """The browser; at the end it must have met no problem, and asked for files of the test alone."""
    browser.problems.clear(), browser.requests.clear()
    browser.look()
    yield browser
    assert browser.problems == []
    assert all(url.startswith(("file:///", "http://127.0.0.1:")) for url in browser.requests), browser.requests


def write(folder, stream, rows, mode="w"):
    with open(folder / f"{stream}.jsonl", mode, encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def step(number, **more):
    row = {"schema": 1, "stage": 2, "step": number, "steps": 9, "global_step": number, "acc_attempt1": 0.1 * number}
    return row | {"acc_attempt2": 0.5, "reward/match_attempt2": 0.5, "reward/tags_attempt2": 0.25} | more


def rollout(number, first, second, match1, match2, **more):
    row = {"when": "train", "stage": 2, "step": number, "prompt": f"question {number}", "target": "5", "length1": 7}
    row |= {"attempt1": first, "attempt2": second, "match1": match1, "match2": match2, "finished1": True}
    return row | {"reward1": {"match": 0.5}, "reward2": {"match": float(match2), "tags": 0.25}} | more


@pytest.fixture
def run(tmp_path):
    """A run with every kind of rollout, and with texts that would like to be more than texts."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "config.yaml").write_text(yaml.safe_dump({"run_name": "tiny"}))
    write(folder, "metrics", [step(number) for number in range(1, 6)])
    write(folder, "evaluations", [])
    alarm = {"alarm": "malformed", "event": "begins", "severity": "warning", "stage": 2, "step": 3, "text": "odd texts"}
    write(folder, "alarms", [alarm])
    write(folder, "generations", [
        rollout(1, "<think>2+2</think><answer>4</answer>", "<think>2+3</think><answer>5</answer>", False, True),
        rollout(1, "<think>2+2</think><answer>4</answer>", "<think>2+2</think><answer>4</answer>", False, False,
                advantage2=-0.75),
        rollout(2, "<answer>5</answer>", "<answer>6</answer>", True, False, finished2=False, advantage2=2.5),
        rollout(3, "<answer>5</answer> and more", "<answer>5</answer>", True, True, malformed1="text after </answer>"),
        *(rollout(4, text, name, False, False) for name, text in HOSTILE.items()),
    ])  # fmt: skip
    return folder


def page(folder, fragment="", **options):
    runs = [read_run(folder)]
    target = folder / "report.html"
    target.write_text(render_runs(runs, rollouts_of(runs), **options), encoding="utf-8", errors="backslashreplace")
    return f"file://{target}{fragment}"


def opened(browser, address):
    browser.call("Page.navigate", url="about:blank")  # else only the fragment would change
    return browser.open(address)


def test_the_readmes_picture_is_what_the_page_shows_first(run, tmp_path):
    command = [sys.executable, ROOT / "docs" / "picture.py", run, tmp_path / "page.png"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    drawn = (tmp_path / "page.png").read_bytes()
    assert drawn[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", drawn[16:24]) == (1280, 900)
    assert not (run / "report.html").exists()  # the run is left as it was


def test_the_first_screen_has_a_sentence_a_picture_and_a_corrected_answer(clean, run):
    def rates(one, two):
        row = {"acc_attempt1": one, "acc_attempt2": two, "delta": two - one, "i_to_c": 0.3, "c_to_i": 0.1}
        return row | {f"{key}_ci95": [value - 0.05, value + 0.05] for key, value in row.items()}

    write(run, "evaluations", [
        step(0, when="pretrain", n=4, prompts=4, temperature=1.0) | rates(0.5, 0.5),
        step(5, when="after_stage2", n=4, prompts=4, temperature=1.0) | rates(0.5, 0.75),
    ])  # fmt: skip
    texts = ("<think>2+2</think><answer>4</answer>", "<think>2+3</think><answer>5</answer>")
    write(run, "generations", [
        rollout(0, *texts, False, True, when="pretrain"), rollout(5, "<answer>4</answer>", *texts[:1], False, False,
                                                                  when="after_stage2"),
        rollout(5, *texts, False, True, when="after_stage2"),
        rollout(5, *texts, False, True, when="after_stage2", malformed1="text before <think>"),
    ], mode="a")  # fmt: skip
    for width, height, phone in ((1280, 900, False), (380, 800, True)):
        clean.look(width=width, height=height, phone=phone)
        opened(clean, page(run))
        clean.until("document.querySelector('canvas') && document.querySelector('.correction .new')")
        assert clean.run("document.querySelector('.lead').textContent.replaceAll('\\u00a0', ' ')") == (
            "Attempt 2 beats attempt 1: it is right on 75.0 % of the held-out questions; before training it was 50.0 %."
        )
        assert clean.run("document.querySelector('figure').ariaLabel") == "Accuracy on held-out questions"
        words = "[...document.querySelectorAll('.correction .text')].map((each) => each.textContent)"
        assert clean.run(words) == list(texts)
        assert clean.run("[...document.querySelectorAll('.correction .new')].map((each) => each.textContent)") == [
            "3",
            "5",
        ]
        below = "document.querySelector('.correction').getBoundingClientRect().bottom"
        assert clean.run(below) <= height < clean.run("document.querySelector('table').getBoundingClientRect().top")
    clean.run("document.querySelector('.correction a').click()")
    clean.until(f"{COUNT}.startsWith('2 of')")


def test_charts_have_the_right_numbers_and_the_key_follows_the_pointer(clean, run):
    opened(clean, page(run))
    figure = "document.querySelector('figure[aria-label=\"Accuracy in training\"]')"
    clean.until(f"{figure}.querySelector('canvas')")
    key = f"[...{figure}.querySelectorAll('.key li')].map((each) => each.textContent)"
    assert clean.run(key) == ["attempt 1 50.0 %", "attempt 2 50.0 %", ""]
    clean.run(f"{figure}.scrollIntoView({{ block: 'center' }})")
    place = clean.run(f"Object.values({figure}.querySelector('.u-over').getBoundingClientRect().toJSON())")
    clean.call("Input.dispatchMouseEvent", type="mouseMoved", x=place[0] + 3, y=place[1] + 20)
    clean.until(f"{key}[2] === 'step 1'")
    assert clean.run(key) == ["attempt 1 10.0 %", "attempt 2 50.0 %", "step 1"]
    clean.run(f"{figure}.querySelector('summary').click()")
    clean.until(f"{figure}.querySelectorAll('tbody tr').length === 5")
    row = f"[...{figure}.querySelectorAll('tbody tr')[3].cells].map((each) => each.textContent)"
    assert clean.run(row) == ["4", "40.0 %", "50.0 %"]
    label = clean.run(f"{figure}.querySelector('canvas').getAttribute('aria-label')")
    assert label == "Accuracy in training: attempt 1 10.0 % to 50.0 %; attempt 2 50.0 % to 50.0 %"


def test_filters_search_and_permalinks_give_the_right_rollouts(clean, run):
    opened(clean, page(run, "#rollouts"))
    clean.until(f"{COUNT} === '8 of 8 rollouts'")

    def shows(flag, *titles):
        clean.run(f"document.querySelector('.chip[value={flag}]').click()")
        clean.until(f"{COUNT}.startsWith('{len(titles)} of')")
        assert clean.run(LINES) == list(titles)
        assert f"f={flag}" in clean.run("location.hash")
        clean.run(f"document.querySelector('.chip[value={flag}]').click()")
        clean.until(f"{COUNT}.startsWith('8 of')")

    shows("i_to_c", "question 1")
    shows("c_to_i", "question 2")
    shows("truncated", "question 2")
    shows("malformed", "question 3")
    shows("copied", "question 1")
    shows("alarm", "question 3", *["question 4"] * 4)
    clean.run("document.querySelector('[name=q]').value = 'AND MORE';"
              "document.querySelector('form').dispatchEvent(new Event('input'))")  # fmt: skip
    clean.until(f"{COUNT} === '1 of 8 rollouts'")
    assert clean.run(LINES) == ["question 3"]
    assert clean.run("document.querySelector('.hit').textContent") == "and more"
    assert clean.run("document.querySelector('.fault').textContent") == " "  # split where the search has found it
    assert clean.run("[...document.querySelectorAll('.fault')].map((each) => each.textContent).join('')") == " and more"
    opened(clean, page(run, "#from=2&to=3"))
    clean.until(f"{COUNT}.startsWith('2 of')")
    assert clean.run(LINES) == ["question 2", "question 3"]
    opened(clean, page(run, "#sort=advantage"))
    clean.until(f"{COUNT}.startsWith('8 of')")
    assert clean.run(LINES)[:2] == ["question 2", "question 1"]
    opened(clean, page(run, "#r=0.3"))
    clean.until("document.querySelector('.detail .prompt')?.textContent === 'question 3'")


def test_an_alarm_in_training_leads_to_the_curve_of_training():
    held_out, training = ({"title": title, "of": of, "keys": ["acc_attempt1"]}
                          for title, of in (("Held out", "evaluations"), ("In training", "metrics")))  # fmt: skip
    sections = [PageSection("Learning", [Charts([held_out])]), PageSection("Training", [Charts([training])])]
    assert chart_of("acc_attempt1", sections) == "chart-in-training" and chart_of("acc_attempt2", sections) == ""


def test_a_collapse_is_told_at_once_and_a_click_leads_to_its_cause(clean):
    """An excerpt of a run whose lenient reward was gamed: `configs/sweep_gamed.yaml`, seed 130, on_collapse: warn."""
    folder = TESTS / "collapsed"
    runs = [read_run(folder)]
    with serve([folder], 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        try:
            clean.look(width=1280, height=800)
            opened(clean, address)
            lines = clean.until("[...document.querySelectorAll('.alert p')].map((each) => each.innerText)")
            assert [line.replace("\xa0", " ") for line in lines] == [
                "Reward is being earned without the <answer> block: stage II, step 30 (step 100 of 170). "
                "Training went on.",
                "In attempt 1 the share of paid answers that lack an <answer> block, which most had at first, rose "
                "from 5.1 % to 21.5 % since step 29. Accuracy counts such answers as right, so it does not show this. "
                "See the curve",
                "For example, attempt 1: <think>06 14 19 22 25 25</answer> → reward 1",
                "Fix: set reward.format: answer, so that nothing is paid without it, and start again: the policy has "
                "learned to leave it out. Read the 14 rollouts",
            ]
            above = "document.querySelector('.alert').nextElementSibling.getBoundingClientRect().bottom"
            assert clean.run(above) < 600  # on the first screen, and above the accuracies
            clean.run("document.querySelector('.alert a').click()")
            place = "document.getElementById('chart-paid-without-the-form').getBoundingClientRect()"
            clean.until(f"0 <= {place}.top && {place}.bottom <= innerHeight")
            clean.run("location.hash = '#rollouts'")
            clean.until("document.querySelector('.detail') && document.getElementById('overview').hidden")
            clean.run("history.back()")  # to the curve again, from the other view
            clean.until(f"0 <= {place}.top && {place}.bottom <= innerHeight")
            clean.run("document.querySelectorAll('.alert a')[1].click()")
            clean.until("document.querySelector('.detail .prompt')")
            shown, every = clean.run(COUNT).split()[0::2]
            lists = [row for row in runs[0].generations if row["stage"] == 2 and 25 <= row["step"] <= 30]
            paid = [row for row in lists if row["match1"] and "<answer>" not in row["attempt1"]]
            assert int(shown) == len(paid) == 14 and int(every) == len(runs[0].generations)
            assert clean.run("document.querySelector('.detail header a').textContent") == "stage II, step 29 (99)"
            told = "document.querySelector('.column').innerText"
            assert "attempt 1 ✓ right" in clean.run(told) and "advantage 1.00" in clean.run(told)
            assert "malformed: <answer> is never opened" in clean.run(told)
            assert clean.run("document.querySelector('.fault').textContent") == "</answer>"
            changes = "document.querySelectorAll('.gone, .new').length"
            assert clean.run(changes) == 0  # which would hide what is missing
            assert clean.run("[document.querySelector('[name=from]'), document.querySelector('[name=to]')]"
                             ".map((each) => each.value).join()") == "95,100"  # fmt: skip
            clean.press("c", "c", "c", "c", "c")  # on through the ways to colour
            clean.until(f"document.querySelector('[name=by]').value === '' && {changes} > 0")
            tree = "[...document.querySelectorAll('.tree > li')].map((each) => each.textContent)"
            assert clean.run(tree)[1] == "attempt 1 #2 ✓attempt 2 #2.1 ✓attempt 2 #2.2 ✓"
            clean.run("document.querySelectorAll('.line')[0].click()")  # and a second click, to another such text
            clean.until("document.querySelectorAll('.line')[0].ariaSelected === 'true'")
            assert clean.run("document.querySelector('.line .number').textContent") == "#2.1"
            nothing = "document.querySelector('.rows .note')?.textContent"
            clean.run("location.hash = '#from=165&to=170&f=train,malformed_paid'")
            clean.until(
                f"{nothing} === 'No rollouts of these steps are kept: they are of steps 90 to 101 of the whole run.'"
            )
            clean.run("location.hash = '#from=90&to=95&f=c_to_i,copied'")
            clean.until(f"{nothing} === 'No rollout of these steps is like that.'")
            for dark in (False, True):
                clean.look(width=1280, height=800, dark=dark)
                for fragment in ("", "#r=0.57"):
                    opened(clean, address + fragment)
                    clean.until("document.querySelector(location.hash ? '.detail .prompt' : '.alert')")
                    assert clean.run(CONTRAST.read_text()) == []
        finally:
            clean.call("Page.navigate", url="about:blank")
            server.shutdown()


def test_tokens_are_coloured_by_what_was_kept_of_them(clean, run):
    tokens = {"sizes": [2, 7, 0], "logp": [-0.01, -2.0, -0.2], "gap": [0.0, -0.3, 0.0], "ratio": [0.0, 0.06, 0.0],
              "clipped": [1], "weight": 0.5}  # fmt: skip
    write(run, "generations", [
        rollout(1, "🙂a<answer", "<b>", False, True, tokens1=tokens, advantage1=0.5, finished1=True),
        rollout(1, "plain", "later", False, True, tokens1={**tokens, "sizes": [1]}),
    ])  # fmt: skip
    opened(clean, page(run, "#r=0.0&by=logp"))
    clean.until("document.querySelectorAll('.column .token').length === 3")
    seen = "[...document.querySelectorAll('.column .token')].map((each) => [each.textContent, each.className])"
    assert clean.run(seen) == [["🙂a", "token rare0"], ["<answer", "token rare3"], ["end", "token end rare1"]]
    assert clean.run("document.querySelector('.column .token').title") == "log-prob −0.01, policy 0, log ratio 0"
    assert "Nothing per token was kept of this answer." in clean.run(
        "document.querySelectorAll('.column')[1].textContent"
    )
    clean.press("c")
    clean.until("location.hash.includes('by=gap')")
    clean.until("document.querySelector('[name=by]').value === 'gap'")
    clean.until(f"{seen}[1]?.[1] === 'token down3'")
    clean.press("c")
    clean.until(f"{seen}[1]?.[1] === 'token up2'")
    clean.run("document.querySelector('[name=by]').value = 'learned';"
              "document.querySelector('[name=by]').dispatchEvent(new Event('input', { bubbles: true }))")  # fmt: skip
    clean.until(f"{seen}.map((each) => each[1]).join() === 'token up3,token clipped,token end up3'")
    assert clean.run("document.querySelector('.legend').textContent").startswith("What the loss does with the token: ")
    clean.run("document.querySelector('details.tokens summary').click()")
    clean.until("document.querySelectorAll('details.tokens tbody tr').length === 3")
    cells = "[...document.querySelectorAll('details.tokens tbody tr')[1].cells].map((each) => each.textContent)"
    assert clean.run(cells) == ['"<answer"', "−2", "−0.3", "+0.06"]
    assert clean.run(CONTRAST.read_text()) == []
    clean.press("c")  # back to parts
    clean.until("!document.querySelector('.token')")
    clean.run("document.querySelector('.chip[value=tokens]').click()")
    clean.until(f"{COUNT} === '1 of 2 rollouts'")
    write(run, "generations", [rollout(1, "a", "b", False, True)])
    opened(clean, page(run, "#r=0.0&by=gap"))
    clean.until("document.querySelector('.detail .note')?.textContent.startsWith('This run kept no numbers per token')")


def test_attempts_stand_side_by_side_with_what_changed(clean, run):
    opened(clean, page(run, "#r=0.0"))
    clean.until("document.querySelectorAll('.column').length === 2")
    texts = clean.run("[...document.querySelectorAll('.column .text')].map((each) => each.textContent)")
    assert texts == ["<think>2+2</think><answer>4</answer>", "<think>2+3</think><answer>5</answer>"]

    def spans(kind):
        return clean.run(f"[...document.querySelectorAll('.column .{kind}')].map((each) => each.textContent)")

    assert spans("gone") == ["2", "4"] and spans("new") == ["3", "5"]
    assert "".join(spans("think")) == "2+22+3" and spans("answer") == ["4", "5"]
    heads = clean.run("[...document.querySelectorAll('.column h3')].map((each) => each.textContent)")
    assert heads == ["attempt 1 ✗ wrong", "attempt 2 ✓ right"]
    told = clean.run("[...document.querySelectorAll('.column .numbers li')].map((each) => each.textContent)")
    assert told == ["match 0.5", "7 tokens", "match 1", "tags 0.25"]
    tree = clean.run("[...document.querySelectorAll('.tree > li')].map((each) => each.textContent)")
    assert tree == ["attempt 1 #1 ✗attempt 2 #1.1 ✓attempt 2 #1.2 ✗"]  # one first attempt, revised twice


def test_a_keyboard_is_enough(clean, run):
    opened(clean, page(run, "#rollouts"))
    clean.until("document.querySelector('.detail .prompt')")
    here = "document.querySelector('.detail .prompt').textContent + document.querySelector('[aria-selected=true]').id"
    clean.press("j", "j")
    clean.until(f"{here} === 'question 2line-2'")
    clean.press("k")
    clean.until(f"{here} === 'question 1line-1'")
    clean.press("[")
    clean.until(f"{here} === 'question 1line-0'")
    clean.press("p", "j", "j", "j")  # pinned: it stays beside the one that is chosen
    clean.until("[...document.querySelectorAll('.prompt')].map((each) => each.textContent).join() === "
                "'question 1,question 3'")  # fmt: skip
    clean.press("/")
    assert clean.run("document.activeElement.name") == "q"
    clean.press("a", "n", "d")
    clean.until(f"{COUNT}.startsWith('1 of')")
    clean.press("Escape", "Escape")
    clean.until(f"{COUNT}.startsWith('8 of')")
    clean.press("o")
    clean.until("!document.getElementById('overview').hidden")


@pytest.mark.parametrize("name", HOSTILE)
def test_texts_are_data(clean, run, name):
    opened(clean, page(run, f"#r=0.{4 + list(HOSTILE).index(name)}"))
    clean.until("document.querySelectorAll('.column').length === 2")
    shown = clean.run("document.querySelector('.column .text').textContent")
    expected = "".join(f"U+{ord(c):04X}" if c in "\u202e\u2066\u2069\x00\x1b\ud800" else c for c in HOSTILE[name])
    assert shown == expected
    assert clean.run("document.title") == "tiny · Rematch" and clean.run("document.images.length") == 0


def test_a_page_of_fifty_thousand_rollouts_opens_at_once_and_is_small(clean, run, monkeypatch):
    many = fewer(50_000, 4_000)
    words = [f"{a * 37 % 9973} + {a} = {a * 38 % 9973}" for a in range(997)]
    body = [" ".join(words[(7 * n + k) % 997] for k in range(20)) for n in range(997)]
    write(run, "generations", (
        rollout(1 + 5 * n // many, f"<think>{body[n % 997]}</think>", f"<think>{body[n * 31 % 997]}</think>",
                n % 3 == 0, n % 5 == 0, prompt=f"What is {n}?") for n in range(many)
    ))  # fmt: skip
    address = page(run)
    assert (run / "report.html").stat().st_size < 15_000_000
    clean.call("Performance.enable", timeDomain="threadTicks")  # of this page alone: the machine may be busy
    opened(clean, address)
    clean.until("document.querySelector('canvas')")
    spent = {metric["name"]: metric["value"] for metric in clean.call("Performance.getMetrics")["metrics"]}
    assert clean.run("document.querySelector('h1').textContent") == "tiny" and spent["TaskDuration"] < 2
    clean.run("location.hash = '#rollouts'")
    clean.until(f"{COUNT} === '{many:,} of {many:,} rollouts' && document.querySelector('.detail .prompt')")
    assert clean.run("document.querySelectorAll('.line').length") < 100
    clean.run(f"document.querySelector('[name=q]').value = 'What is {many - 1}?';"
              "document.querySelector('form').dispatchEvent(new Event('input'))")  # fmt: skip
    clean.until(f"{COUNT} === '1 of {many:,} rollouts'")
    assert clean.run(LINES) == [f"What is {many - 1}?"]
    whole = (run / "report.html").stat().st_size
    monkeypatch.setattr("pages.page.MOST_BYTES", whole // 4)
    address = page(run)
    assert (run / "report.html").stat().st_size < whole // 2
    opened(clean, address + "#rollouts")
    note = clean.until("document.querySelector('#rollouts > .note').textContent")
    kept = clean.until(f"{COUNT}.includes('rollouts') && {COUNT}").split()[0]
    assert note.startswith(f"{kept} of {many:,} rollouts are in this file, drawn evenly; ")
    assert note.endswith("--watch shows all")


def test_a_live_page_shows_a_new_step_within_three_seconds(clean, run):
    with serve([run], 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            address = f"http://127.0.0.1:{server.server_port}/"
            opened(clean, address)
            clean.until("document.querySelector('.live').textContent === 'live · stage II, step 5 of 9 so far'")
            write(run, "metrics", [step(6)], mode="a")
            start = time.monotonic()
            clean.until("document.querySelector('.live').textContent.includes('step 6 of 9')")
            print("a new step after", time.monotonic() - start)
            chart = "JSON.parse(document.querySelector('figure script').textContent).x"
            assert clean.run(chart) == [1, 2, 3, 4, 5, 6]
            with open(run / "metrics.jsonl", "ab") as file:
                file.write(b'{"stage": 2, "step": 7, "acc_attempt1": NaN}\n{"st')
            clean.until("document.querySelector('#overview').textContent.includes('1 damaged lines')")
            clean.run("location.hash = '#rollouts'")
            clean.until(f"{COUNT} === '8 of 8 rollouts'")
            clean.run("document.querySelector('#line-3').click()")
            write(run, "generations", [rollout(6, "new", "newer", False, True)], mode="a")
            clean.until(f"{COUNT} === '9 of 9 rollouts'")
            clean.until("document.querySelector('.detail .prompt')?.textContent === 'question 3'")  # still chosen
        finally:
            clean.call("Page.navigate", url="about:blank")  # which asks no more
            server.shutdown()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_its_words_can_be_read(clean, run, scheme):
    clean.look(width=390, height=800, dark=scheme == "dark", phone=True)
    attempts = {"acc_attempt1": 0.0, "acc_attempt2": 0.0, "delta": 0.0, "i_to_c": 0.0, "c_to_i": 0.0}
    write(run, "evaluations", [step(0, when="pretrain", n=4, prompts=4, temperature=1.0) | attempts])
    write(run, "generations", [
        rollout(0, "4", "5", False, is_right, when="pretrain", **more)
        for is_right in (True, False) for more in ({}, {"malformed2": "no tags"})
    ], mode="a")  # fmt: skip
    for fragment in ("", "#r=0.2"):
        opened(clean, page(run, fragment))
        clean.until("document.querySelector(location.hash ? '.detail .prompt' : 'canvas')")
        assert clean.run("document.documentElement.scrollWidth") <= 390
        if fragment:  # leads to the text, not to what stands above it
            clean.until("document.querySelector('.column .text').getBoundingClientRect().bottom < innerHeight")
        assert clean.run(CONTRAST.read_text()) == []
    opened(clean, page(run, "#f=alarm"))
    clean.until("document.querySelector('.detail .prompt')")
    chips = "[document.querySelector('.chips'), document.querySelector('.chip[value=alarm]')]"
    inside, right = clean.run(f"{chips}.map((each) => each.getBoundingClientRect().right)")
    assert right <= inside <= 390  # the filter that is on is seen, although the last of them
    height = "document.querySelector('.filters').getBoundingClientRect().height"
    assert clean.run(height) < 160 and not clean.run("document.querySelector('[name=by]').checkVisibility()")
    clean.run("document.querySelector('.more').click()")
    clean.until("document.querySelector('[name=by]').checkVisibility()")
    used = "document.querySelector('.more').classList.contains('used')"
    assert not clean.run(used)
    clean.run("document.querySelector('[name=sort]').value = 'last';"
              "document.querySelector('[name=sort]').dispatchEvent(new Event('input', { bubbles: true }))")  # fmt: skip
    clean.until(used)
    names = "[...document.querySelectorAll('input, select, button')].filter((each) => !(each.labels?.length || "
    assert clean.run(f"{names}each.getAttribute('aria-label') || each.textContent)).length") == 0
