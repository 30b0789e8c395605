"""The page of models behind URLs: from transcripts of synthetic models to sentences, tables and chats."""

import base64
import gzip
import json
import re

import pytest
from helpers.browser import PROGRAM, Browser
from helpers.tiny import call

import report
from lib.core.config import Eval, ScoreConfig, Server
from lib.core.errors import ConfigError
from lib.generators.protocol import Reply, ReplyError
from lib.rewards.judge import Judge
from lib.rl.served import CONDITIONS, ServedAttempts
from lib.run.runlog import encode, write_whole

HOSTILE = "</script><script>document.title = 'taken'</script><img src=http://x.invalid/ onerror=alert(1)> \u202e"
CONFIG = {
    "run_name": "x",
    "model": {"name": "never/loaded"},
    "dataset": {"name": "data.jsonl"},
    "prompts": {"user": "{question}", "self_correction": "Check it."},
    "reward": {"fn": "exact_match", "format": "answer"},
}
ROWS = [{"question": f"Q{n} <b>", "answer": str(n), "task": ("odd", "even")[n % 2 == 0], "step": 1} for n in range(40)]


def folder_of(path, name, repairs):
    """A run of a model that is wrong on every other pair of questions, and on one gives no second look."""
    config = ScoreConfig(**CONFIG)

    def ask(what, requests):
        replies = []
        for request in requests:
            number = int(request.messages[0]["content"][1:].split()[0])
            is_right = number % 4 < 2 or (repairs and request.messages[-1]["content"] == "Check it.")
            text = f"{HOSTILE}<answer>{number if is_right else 'no'}</answer>"
            is_lost = len(request.messages) > 1 and number == 0 and request.messages[-1]["content"] == "Check it."
            replies.append(ReplyError("timeout", HOSTILE) if is_lost else Reply(text))
        return replies

    judge = Judge(config.reward, list(ROWS[0]), "answer")
    attempts = ServedAttempts(config, Server(model=name), judge, ROWS, Eval(temperature=1.0), ask)
    chats = attempts.run()
    path.mkdir()
    write_whole(path / "transcripts.jsonl", map(encode, attempts.transcripts(chats)))
    card = {"model": name, "temperature": 1.0} | attempts.card(chats)
    write_whole(path / "self_correction.json", [encode(card)])
    return card


def browsed(html):
    blobs = dict(re.findall(r'<script type="application/gzip" id="blob-([\w-]+)">(.*?)</script>', html))
    trees = {name: json.loads(gzip.decompress(base64.b64decode(text))) for name, text in blobs.items()}
    return trees["index"], [body for name in trees if name.startswith("part") for body in trees[name]["rollouts"]]


def test_the_page_says_what_the_card_says(tmp_path):
    card = folder_of(tmp_path / "one", f"a/b {HOSTILE}", repairs=True)
    assert call(report, tmp_path / "one") == 0
    html = (tmp_path / "one/report.html").read_text()
    assert (
        "it finds its own errors; no sign that it breaks right answers; no sign that it gives in to pressure." in html
    )
    assert "<script>document.title" not in html and "<img src" not in html and "\u202e" not in html
    for title in ("Findings", "Conditions", "second_look by task"):
        assert f">{title}</h2>" in html
    assert ">second_look by step<" not in html  # there is one step alone
    look = card["conditions"]["second_look"]
    assert f"{100 * look['i_to_c']:.1f}\u00a0%" in html or f"{100 * look['i_to_c']:.1f} %" in html
    index, bodies = browsed(html)
    moments = [moment["label"] for moment in index["moments"]]
    assert set(moments) == set(CONDITIONS)
    rows = index["rows"]
    flags = [{flag for bit, flag in enumerate(index["flags"]) if value >> bit & 1} for value in rows["flags"]]
    for name in CONDITIONS:
        chosen = [place for place, moment in enumerate(rows["moment"]) if moments[moment] == name]
        numbers = card["conditions"][name]
        assert len(chosen) == numbers["n"] + numbers["missing"]
        if name not in ("planted", "other"):
            for key in ("i_to_c", "c_to_i"):
                assert sum(key in flags[place] for place in chosen) == round(numbers["n"] * (numbers[key] or 0))
            link = f'<a href="#f=i_to_c&amp;at={moments.index(name)}">'
            assert link in html
        for place in chosen:
            body, first = bodies[place], "own attempt 1 right" in flags[place]
            assert ("task even" in flags[place]) is (int(body["target"]) % 2 == 0)
            assert first is (int(body["target"]) % 4 < 2) is ("own attempt 1 wrong" not in flags[place])
            assert [text["who"] for text in body["texts"]] == ["attempt 1", "attempt 2"]
            assert body.get("message", "").startswith("Check it.") is (name in ("second_look", "planted", "other"))
    lost = [body for body in bodies if "[no reply: timeout" in body["texts"][1]["text"]]
    assert len(lost) == 3 and all("match" not in body["texts"][1] for body in lost)


def test_several_folders_are_one_page(tmp_path):
    for name, repairs in (("one", True), ("two", False)):
        folder_of(tmp_path / name, f"model-{name}", repairs)
    assert call(report, tmp_path / "one", tmp_path / "two") == 0
    html = (tmp_path / "report.html").read_text()
    assert "model-one: it finds its own errors;" in html and "model-two: no sign that it finds its own errors;" in html
    heads = re.findall(r'<th scope="col" class="muted">(.*?)</th>', html)
    assert heads == ["model-one", "model-two"] + ["attempt 1", "attempt 2", "i→c", "c→i", "n"] * 2
    assert len(re.findall(r'<th scope="row">model-(?:one|two)</th>', html)) == 2 * (len(CONDITIONS) + 2)
    assert len(browsed(html)[0]["rows"]["id"]) == 2 * len(ROWS) * len(CONDITIONS)


def test_models_of_one_name_are_named_by_their_folders(tmp_path):
    for name, repairs in (("before", False), ("after", True)):
        folder_of(tmp_path / name, "corrector", repairs)
    assert call(report, tmp_path / "before", tmp_path / "after") == 0
    assert "after: it finds its own errors;" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("options", [["--text"], ["--watch"], ["--csv"], ["other"]])
def test_what_is_for_runs_of_training_alone_is_refused(tmp_path, options):
    folder_of(tmp_path / "one", "m", repairs=True)
    (tmp_path / "other").mkdir()
    words = [tmp_path / word if word == "other" else word for word in options]
    with pytest.raises(ConfigError, match="has a page alone or with others of its kind"):
        call(report, tmp_path / "one", *words)


def test_a_damaged_card_is_named(tmp_path):
    folder_of(tmp_path / "one", "m", repairs=True)
    (tmp_path / "one/self_correction.json").write_text("{")
    with pytest.raises(ConfigError, match=r"this is no card of evaluate\.py --url"):
        call(report, tmp_path / "one")


@pytest.mark.skipif(PROGRAM is None, reason="no Chromium here: install Debian's package chromium")
def test_chats_are_filtered_and_hostile_texts_stay_texts(tmp_path):
    folder_of(tmp_path / "one", "m", repairs=True)
    assert call(report, tmp_path / "one") == 0
    browser = Browser(tmp_path / "browser")
    try:
        browser.open((tmp_path / "one/report.html").as_uri() + "#f=i_to_c,task even&at=0")
        browser.until("document.querySelector('.count').textContent.includes('10')")
        detail = "document.querySelector('.detail').textContent"
        browser.until(f"{detail}.includes('then the user says Check it.')")
        assert HOSTILE[:20] in browser.run(detail)
        assert browser.run("document.title") != "taken" and browser.problems == []
    finally:
        browser.close()
