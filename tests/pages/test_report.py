import base64
import csv
import gzip
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml
from helpers.tiny import call

import report
from data.builders import write_rows
from lib.core.errors import ConfigError, StorageError
from lib.rl.checks import CHECKS, sft_checks
from pages import curves, kinds
from pages.alarms import HEADLINES
from pages.blocks import PageSection, TableLine, TextTable
from pages.facts import reward_in_words
from pages.run_folder import read_run
from pages.terminal import show_sections

VOID = {"meta", "br", "hr", "img", "input", "link", "path", "use"}


class Page(HTMLParser):
    """Fails where a tag is closed that is not open; keeps all text outside scripts, all attributes, and the charts."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text, self.attributes, self.charts = [], [], [], {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.attributes += attributes
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.attributes += attributes

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["script"] and "figure" in self.open:
            chart = json.loads(data)
            self.charts[chart["title"]] = chart
        elif self.open[-1:] not in (["script"], ["style"]) and data.strip():
            self.text.append(data.strip())


def evaluation(when, stage, step, one, two, **more):
    row = {"when": when, "stage": stage, "step": step, "n": 200, "prompts": 100, "temperature": 1.0}
    rates = {"acc_attempt1": one, "acc_attempt2": two, "delta": two - one, "i_to_c": 0.231, "c_to_i": 0.017}
    for key, value in rates.items():
        row[key], row[f"{key}_ci95"] = value, [value - 0.011, value + 0.012]
    return row | {"well_formed_attempt1": 0.987, "well_formed_attempt2": 0.543} | more


def step(stage, number, steps, before, **more):
    row = {"stage": stage, "step": number, "steps": steps, "global_step": before + number}
    for attempt in (1, 2):
        row[f"acc_attempt{attempt}"] = row[f"reward_attempt{attempt}"] = 0.3 + 0.01 * number * attempt
        row[f"kl_attempt{attempt}"] = 0.0 if number == 1 else 0.001 * number * attempt
        row[f"length_attempt{attempt}"], row[f"truncated_attempt{attempt}"] = 13.0, 0.0
    seconds = {"generate": 1.5, "reference": 0.25, "forward_backward": 0.75, "other": 0.004}
    return row | {"tokens": 1000} | {f"seconds_{name}": value for name, value in seconds.items()} | more


def said(when, stage, number, match1, match2, text):
    where = {"when": when, "stage": stage, "step": number, "prompt": "7-<2>", "target": "5"}
    return where | {"attempt1": f"{text} one", "attempt2": f"{text} two", "match1": match1, "match2": match2}


def write(folder, stream, rows):
    write_rows(folder / f"{stream}.jsonl", rows)


@pytest.fixture
def run(tmp_path):
    """A finished run of 4 + 4 steps."""
    folder = tmp_path / "outputs" / "tiny"
    folder.mkdir(parents=True)
    config = {"run_name": "tiny", "seed": 0, "model": {"name": "a/model"}, "dataset": {"name": "<script>alert(1)"}}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    write(folder, "metrics", [step(stage, n, 4, 4 * (stage - 1)) for stage in (1, 2) for n in range(1, 5)])
    write(folder, "evaluations", [
        evaluation("pretrain", 1, 0, 0.381, 0.372), evaluation("step", 1, 2, 0.382, 0.455),
        evaluation("after_stage1", 1, 4, 0.402, 0.554), evaluation("step", 2, 2, 0.503, 0.651),
        evaluation("after_stage2", 2, 4, 0.664, 0.738),
    ])  # fmt: skip
    write(folder, "generations", [
        said("pretrain", 1, 0, False, False, "early"), said("train", 1, 1, False, True, "never shown"),
        said("after_stage2", 2, 4, False, True, "late \ud800 <b>bold</b>") | {"malformed1": "text after </answer>"},
    ])  # fmt: skip
    return folder


def page_of(*arguments):
    assert call(report, *arguments) == 0
    return Page(Path(arguments[0], "report.html").read_text(encoding="utf-8"))


def rollouts_in(folder):
    """The rollouts of a page as its browser sees them: the index, and the texts of each."""
    text = (folder / "report.html").read_text(encoding="utf-8")
    blobs = re.findall(r'<script type="application/gzip" id="blob-([\w-]+)">(.*?)</script>', text)
    found = {name: json.loads(gzip.decompress(base64.b64decode(blob))) for name, blob in blobs}
    bodies = [each for name, part in found.items() if name.startswith("part-") for each in part["rollouts"]]
    return found["index"], found["prompts"]["prompts"], bodies


def flags_in(index):
    return [{flag for bit, flag in enumerate(index["flags"]) if bits & 1 << bit} for bits in index["rows"]["flags"]]


def test_metrics_and_evaluations_as_tables(run, capsys):
    page_of(run, "--csv")
    with open(run / "evaluations.csv", encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    rows = [json.loads(line) for line in (run / "evaluations.jsonl").read_text().splitlines()]
    assert [float(row["acc_attempt2"]) for row in found] == [row["acc_attempt2"] for row in rows]
    interval = [[float(row[f"delta_ci95_{end}"]) for end in ("low", "high")] for row in found]
    assert interval == [row["delta_ci95"] for row in rows] and found[0]["when"] == "pretrain"
    with open(run / "metrics.csv", encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == 8
    assert f"table: {run / 'metrics'}.csv" in capsys.readouterr().out


def test_the_table_has_the_numbers_of_the_evaluations(run, capsys):
    page = page_of(run)
    text = " ".join(page.text)
    shares = {"38.1 %", "37.2 %", "40.2 %", "55.4 %", "66.4 %", "73.8 %", "23.1 %", "1.7 %", "98.7 %", "54.3 %"}
    assert {*shares, "-0.9", "+15.2", "+7.4"} <= set(page.text) and "well-formed 1" in page.text
    assert "65.3 67.6" in page.text and "+6.3 +8.6" in page.text
    assert "65.1 %" not in page.text  # evaluations in the middle of a stage are in the curves
    sentence = "Attempt 2 beats attempt 1: it is right on 73.8 % of the held-out questions; before training it was 37.2"
    assert f"{sentence} %.".replace(" %", "\u00a0%") in page.text
    assert "+7.4 points [+6.3 +8.6]; before training it was -0.9; after stage I it was +15.2." in text
    assert "Exact match at temperature 1, n = 200 answers to 100 held-out questions; below each value" in text
    assert {"12s, 60 %", "6s, 30 %", "2s, 10 %"} <= set(page.text) and "other" not in page.text  # which takes no time
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith(sentence) and shown[1:] == [f"report: {run / 'report.html'}"]


def test_what_to_try_next_works_for_every_tokenizer(run, capsys):
    """export.py refuses GGUF for tokenizers of single characters, as the tiny models have."""
    (run / "stage2").mkdir()
    (run / "stage2" / "MANIFEST.json").touch()
    page_of(run)
    assert capsys.readouterr().out.endswith(f"try next: python chat.py {run}, python export.py {run} --to merged\n")


def test_a_file_that_is_no_page_is_never_replaced(run, tmp_path):
    data, page = tmp_path / "data.jsonl", tmp_path / "page.html"
    for text in ('{"question": "1+1"}\n', "<!doctype html>\n<title>mine</title>\n"):
        data.write_text(text)
        with pytest.raises(ConfigError, match=r"data.jsonl: this file is no page of Rematch.* with --out"):
            call(report, run, "--out", data)
        assert data.read_text() == text
    page.touch()  # an empty one holds nothing
    for _ in range(2):  # and a page is replaced
        assert call(report, run, "--out", page) == 0
    assert Page(page.read_text(encoding="utf-8")).text


@pytest.mark.parametrize("place", ["/proc/x.html", "file/x.html", "."])
def test_a_page_that_cannot_be_written_says_why(run, tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    with pytest.raises(StorageError, match=rf"^{place}: cannot be saved .*or give another file with --out$"):
        call(report, run, "--out", place)


def test_a_fresh_draw_has_columns_where_it_was_measured(run):
    assert "fresh" not in page_of(run).text
    fresh = {"revised_after_wrong": 0.348, "fresh_after_wrong": 0.289, "revised_minus_fresh": 0.059,
             "revised_minus_fresh_ci95": [-0.021, 0.139]}  # fmt: skip
    rows = [json.loads(line) for line in (run / "evaluations.jsonl").read_text().splitlines()]
    write(run, "evaluations", [*rows[:-1], rows[-1] | fresh, rows[-1] | {"temperature": 0.0}])  # which has none
    page = page_of(run)
    assert {"revised", "fresh", "revised − fresh", "34.8 %", "28.9 %", "+5.9", "-2.1 +13.9"} <= set(page.text)
    assert "fresh: how often another first attempt to the same question is." in " ".join(page.text)


def test_the_headline_claims_what_tests_on_pairs_support(run):
    """Six questions that change, all in one direction, are the fewest with p < 0.05: 2 / 2^6 = 0.031."""

    def counts(one, two):
        right = {"acc_attempt1": one, "acc_attempt2": two}
        return {"n": [1] * 16} | {key: [1] * count + [0] * (16 - count) for key, count in right.items()}

    def lead(before, after, p):
        rows = []
        for when, stage, step, right in (("pretrain", 1, 0, before), ("after_stage2", 2, 4, after)):
            row = evaluation(when, stage, step, *(count / 16 for count in right), questions="same", mcnemar_p=p)
            rows.append(row | {"per_question": counts(*right)})
        write(run, "evaluations", rows)
        return next(text for text in page_of(run).text if "is right on" in text).replace("\u00a0", " ")

    assert lead((7, 8), (5, 10), 0.0625) == (
        "Attempt 2 does not measurably beat attempt 1: it is right on 62.5 % of the held-out questions; before "
        "training it was 50.0 %, which is no measurable difference. Attempt 1 did not measurably change: it went from "
        "43.8 % to 31.2 %."
    )
    assert lead((8, 4), (2, 12), 0.002) == (
        "Attempt 2 beats attempt 1: it is right on 75.0 % of the held-out questions; before training it was 25.0 %. "
        "Attempt 1 fell from 50.0 % to 12.5 %."
    )
    assert "Attempt 1" not in lead((8, 8), (8, 15), 0.016)
    assert lead((1, 9), (2, 11), 0.004) == (
        "Attempt 2 beats attempt 1, not measurably more than before training: it is right on 68.8 % of the held-out "
        "questions; before training it was 56.2 %, which is no measurable difference."
    )
    assert "; before training it was +50.0, which is no measurable difference." in " ".join(page_of(run).text)


def test_the_headline_says_whether_it_corrects_copies_or_draws_again(run, capsys):
    rows = [json.loads(line) for line in (run / "evaluations.jsonl").read_text().splitlines()]
    numbers = {"delta": 0.004, "delta_ci95": [-0.004, 0.012], "repeat_rate": 0.98, "repeat_rate_ci95": [0.96, 0.99],
               "revised_minus_fresh": -0.182, "revised_minus_fresh_ci95": [-0.315, -0.049]}  # fmt: skip
    write(run, "evaluations", [rows[0] | {"repeat_rate": 0.5}, *rows[1:-1], rows[-1] | numbers])
    expected = (
        "Attempt 1 is right on 66.4 %; before training it was 38.1 %. Wrong → right less right → wrong is +0.4 points "
        "[-0.4 +1.2]; before training it was -0.9; after stage I it was +15.2. It copies: it repeats 98.0 % "
        "[96.0 99.0] of its wrong answers; before training it was 50.0 %. A revision is worse than a fresh draw: -18.2 "
        "points [-31.5 -4.9]."
    )
    text = " ".join(page_of(run).text).replace("\u00a0%", " %")
    assert expected in text and "Attempt 2 does not measurably beat attempt 1: it is right on 73.8 %" in text
    capsys.readouterr()
    call(report, run, "--text")
    assert expected in " ".join(capsys.readouterr().out.split())


def test_nothing_is_cut_in_a_terminal_of_80_columns(run, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    rows = [json.loads(line) for line in (run / "evaluations.jsonl").read_text().splitlines()]
    wide = {"acc_attempt1_ci95": [0.123, 1.0], "delta_ci95": [-0.419, 1.419], "well_formed_attempt2_ci95": [0.0, 1.0]}
    write(run, "evaluations", [*rows, rows[-1] | wide | {"temperature": 0.0}])
    config = yaml.safe_load((run / "config.yaml").read_text()) | {"generation": {"max_new_tokens_attempt1": 4096}}
    (run / "config.yaml").write_text(yaml.safe_dump(config | {"model": {"name": "a/" + "long-" * 20}}))
    assert call(report, run, "--text") == 0
    text = capsys.readouterr().out
    lines = [line.split() for line in text.splitlines()]
    for ends in ("12.3 100.0", "-41.9 +141.9", "0.0 100.0"):
        assert any(ends in " ".join(line) for line in lines)
    assert ["generation.max_new_tokens_attempt1", "4096", "512"] in lines and "a/" + "long-" * 20 in text


def test_a_table_without_columns_is_printed(capsys):
    empty, one = TextTable([], []), TextTable([], [TableLine("a line")])
    show_sections([PageSection("both", [empty, one])])
    assert "a line" in capsys.readouterr().out


def test_greedy_rows_stand_below_those_beside_them(run):
    rows = [json.loads(line) for line in (run / "evaluations.jsonl").read_text().splitlines()]
    beside = [{**row, "temperature": 0.0, "n": 100, "acc_attempt2": 0.9} for row in rows if row["when"] != "step"]
    both = [row for each in rows for row in (each, *(b for b in beside if b["when"] == each["when"]))]
    write(run, "evaluations", [row | {"rows": [0, 500], "rows_left_out": 125} for row in both])
    write(run, "generations", [
        said("after_stage2", 2, 4, False, True, "main") | {"temperature": 1.0},
        said("after_stage2", 2, 4, False, True, "never shown") | {"temperature": 0.0},
        said("after_stage2", 2, 4, False, True, "never shown") | {"temperature": 1.0, "part": "selection"},
    ])  # fmt: skip
    page = page_of(run)
    labels = [text for text in page.text if text.endswith((", temperature 1", ", greedy"))]
    assert labels == [
        f"{when}, {how}"
        for when in ("pretrain", "after stage I", "after stage II")
        for how in ("temperature 1", "greedy")
    ]
    assert "it is right on 73.8\u00a0%" in " ".join(page.text)  # not the greedy one
    assert (
        "by greedy decoding, n = 100 answers to 100 held-out questions, from rows 0 to 499 (counted from 0) of what is "
        "held out without 125" in " ".join(page.text)
    )
    assert [row["acc_attempt2"] for row in read_run(run).evaluations] == [0.372, 0.455, 0.554, 0.651, 0.738]
    temperatures = [moment["label"] for moment in rollouts_in(run)[0]["moments"]]
    assert temperatures == ["after stage II, temperature 1", "after stage II, greedy",
                            "after stage II, temperature 1, selection"]  # fmt: skip


def test_swapped_attempts_have_a_section(run, capsys):
    def found(temperature, acc):
        numbers = {"n": 90, "acc": acc, "acc_ci95": [acc - 0.01, acc + 0.02], "minus_own": -0.25, "acc_own_wrong": None,
                   "minus_own_own_wrong": 0.125}  # fmt: skip
        row = {"when": "after_stage2", "stage": 2, "step": None, "n": 100, "prompts": 100, "temperature": temperature}
        return row | {"after": {"own": numbers, "other": numbers}}

    assert not [text for text in page_of(run).text if "makes of attempt 1" in text]
    write(run, "swaps", [found(0.0, 0.111), found(1.0, 0.333), found(0.0, 0.222)])
    text = page_of(run).text
    assert "What attempt 2 makes of attempt 1" in text and "11.1 %" not in text  # the newest of its kind
    start = text.index("after its own")
    assert text[start + 1 : start + 7] == ["22.2 %", "21.2 24.2", "–", "–", "–", "–"]  # not less itself
    start = text.index("after another's")
    assert text[start + 1 : start + 6] == ["22.2 %", "21.2 24.2", "-25.0", "–", "+12.5"]
    assert any("after stage II, by greedy decoding, n = 100 answers to 100 held-out questions" in line for line in text)
    capsys.readouterr()
    call(report, run, "--text")
    shown = capsys.readouterr().out.partition("makes of attempt 1\n")[2].partition("How often")[0]
    assert max(map(len, shown.splitlines())) <= 100 and shown.count("after its own") == 2


def test_the_page_needs_no_network_and_texts_are_only_text(run):
    page = page_of(run)
    html = (run / "report.html").read_text(encoding="utf-8")
    assert "<script>alert" not in html and "<b>bold" not in html
    policy = next(value for key, value in page.attributes if key == "content")
    assert policy.startswith("default-src 'none';") and "connect-src" not in policy
    links = [value for key, value in page.attributes if key in ("src", "href", "xlink:href")]
    assert all(value.startswith("#") for value in links)
    ids = [value for key, value in page.attributes if key == "id"]
    assert len(ids) == len(set(ids))
    index, prompts, bodies = rollouts_in(run)
    assert prompts == ["7-<2>"] and bodies[2]["texts"][1]["text"] == "late \ud800 <b>bold</b> two"
    assert flags_in(index) == [
        {"evaluation", "wrong", "changed"}, {"train", "right", "i_to_c", "changed"},
        {"evaluation", "right", "i_to_c", "changed", "malformed"},
    ]  # fmt: skip


def test_every_curve_is_there_and_stage_two_begins_where_it_began(run):
    page = page_of(run)
    assert list(page.charts) == [
        "Accuracy on held-out questions", "What correcting changes", "Gain of a second look",
        "Accuracy in training", "Distance from the base model", "Length", "Truncation",
    ]  # fmt: skip
    assert read_run(run).boundaries == [4]
    assert [row["global_step"] for row in read_run(run).evaluations] == [0, 2, 4, 6, 8]
    chart = kinds.TRAINING[2]
    assert [point.step for point in curves.points(chart, read_run(run), "kl_attempt1")] == [2, 3, 4, 6, 7, 8]
    drawn = page.charts["Accuracy on held-out questions"]
    assert drawn["x"] == [0, 2, 4, 6, 8] and drawn["marks"] == [{"x": 4, "text": "stage II", "kind": "stage"}]
    one = drawn["series"][0]
    assert (one["label"], one["y"], one["low"][0]) == ("attempt 1", [0.381, 0.382, 0.402, 0.503, 0.664], 0.37)
    write(run, "metrics", [step(1, 1, 4, 0, reward_attempt2=0.9)])  # a reward of its own has a picture of its own
    again = page_of(run)
    assert "Reward in training" in again.charts


def test_drift_is_shown_by_family(run):
    assert "Drift" not in page_of(run).charts
    write(run, "metrics", [step(1, n, 4, 0) | {"drift/ia3": 0.1 * n, "drift/soft_prompt": 0.0} for n in range(1, 5)])
    assert [series["label"] for series in page_of(run).charts["Drift"]["series"]] == ["ia3"]  # logarithmic


def test_torn_lines_and_missing_fields_do_not_stop_it(run):
    with open(run / "metrics.jsonl", "ab") as file:
        file.write(b'{"stage": 2, "step": 5, "steps": 8, "global_step": 9, "acc_attempt1": null}\n{"stage": 2, "st')
    with open(run / "evaluations.jsonl", "ab") as file:
        file.write(
            b'\xff\xfe\n{"when": "step"}\n[1]\n{"when": "after_stage2", "stage": 2, "step": 5, "acc_attempt1": null}\n'
        )
    with open(run / "generations.jsonl", "ab") as file:
        file.write(b'{"when": "after_stage2", "stage": 2, "step": 4}\n{"wh')
    text = " ".join(page_of(run).text)
    assert "4 damaged lines of the logs were skipped" in text
    assert "stage II, step 5 of 8 so far" in text and "73.8 %" in text


def test_a_run_that_has_only_begun(run):
    for name in ("config.yaml", "generations.jsonl", "metrics.jsonl"):
        (run / name).unlink()
    write(
        run, "evaluations", [{"when": "pretrain", "stage": 1, "step": 0, "acc_attempt1": 0.25, "acc_attempt2": 0.125}]
    )
    page = page_of(run)
    assert "25.0 %" in page.text and "12.5 %" in page.text and "nothing trained yet" in page.text
    write(run, "evaluations", [])
    assert "No evaluation so far: nothing trained yet." in page_of(run).text


def test_supervised_runs_have_their_own_curves(run):
    write(run, "evaluations", [{"when": "step", "step": 2, "loss": 0.5}])
    write(run, "metrics", [{"step": n, "steps": 9, "loss": 1 / n, "mean_token_accuracy": 0.5} for n in range(1, 4)])
    page = page_of(run)
    assert list(page.charts) == ["Loss", "Tokens right"]
    assert "step 3 of 9 so far" in page.text
    assert "The loss on held-out rows, in nats per token, was 0.5000 at step 2." in page.text
    losses = (0.5, None, 0.375, 0.25)  # one of them is lost
    write(run, "evaluations", [{"when": "step", "step": 2 * n, "loss": loss} for n, loss in enumerate(losses, 1)])
    assert "in nats per token, was 0.5000 at step 2 and 0.2500 at step 8." in " ".join(page_of(run).text)
    write(run, "evaluations", [])
    assert "No evaluation so far: step 3 of 9 so far." in page_of(run).text


def test_settings_are_those_that_are_not_at_their_defaults(run):
    config = yaml.safe_load((run / "config.yaml").read_text())
    config |= {"train": {"alpha": 2.5, "stage1_steps": 4, "beta2": 0.1}, "reward": {"answer_extractor": "mine.found"}}
    (run / "config.yaml").write_text(yaml.safe_dump(config | {"prompts": {"self_correction": "Again.", "odd": 1}}))
    (run / "machine.json").write_text(json.dumps({"commit": "0123456789abcdef", "is_changed": True, "threads": 2}))
    text = page_of(run).text
    text = text[text.index("Settings") : text.index("Config")]
    for line in (("train.alpha", "2.5", "1.0"), ("train.stage1_steps", "4", "null"), ("seed", "0", "3407"),
                 ("reward.answer_extractor", "mine.found", "identity"), ("prompts.odd", "1", "–")):  # fmt: skip
        assert tuple(text[text.index(line[0]) :][:3]) == line
    assert "train.beta2" not in text and text[1:5] == ["commit", "0123456789ab and changes", "threads", "2"]


def test_an_alarm_leads_to_its_texts(run):
    alarm = {
        "alarm": "malformed_is_paid.malformed_paid_attempt1",
        "event": "begins",
        "severity": "collapse",
        "stage": 2,
    }
    write(run, "alarms", [alarm | {"step": 3, "text": "malformed answers are paid", "action": "warn"}])
    page = page_of(run)
    alert = "Reward is being earned by malformed answers: stage II, step 3 (step 7 of 8). Training went on."
    assert page.text[page.text.index("tiny") :].index(alert) < 5  # under the title
    link = "#from=2&to=7&f=train,malformed_paid&sort=advantage&by=parts"
    assert ("href", link) in page.attributes and "No rollout that is kept shows it" in page.text


def test_the_clearest_text_behind_an_alarm_is_shown_and_the_others_are_told_with_their_end(run, capsys):
    def paid(step, text, advantage):
        row = said("train", 2, step, True, True, text) | {"malformed1": "text after </answer>", "reward1": {"match": 1}}
        return row | {"advantage1": advantage}

    write(run, "generations", [
        paid(1, "dull", 0.0), paid(2, "<b>\u202eclear", 0.5), paid(3, "nearest, but nothing learned", 0.0),
        said("train", 2, 3, True, True, "well-formed") | {"advantage1": 2.0},
    ])  # fmt: skip
    place, text = {"stage": 2, "severity": "warning"}, "in attempt 1 the share rose from 1 % to 9 %; raise it"
    write(run, "alarms", [
        place | {"alarm": "truncated.truncated_attempt1", "event": "begins", "step": 1, "text": text, "action": "warn"},
        place | {"alarm": "truncated.truncated_attempt1", "event": "ends", "step": 2, "text": "over"},
        place | {"alarm": "malformed_is_paid.malformed_paid_attempt1", "event": "begins", "severity": "collapse",
                 "step": 3, "text": text, "action": "restore"},
    ])  # fmt: skip
    page = page_of(run)
    told = [text.replace("\xa0", " ") for text in page.text]
    start = told.index(
        "Reward is being earned by malformed answers: stage II, step 3 (step 7 of 8). "
        "It went back to its best checkpoint."
    )
    assert told[start + 1 : start + 5] == [
        "In attempt 1 the share rose from 1 % to 9 %. Accuracy counts such answers as right, so it does not show this.",
        "For example, attempt 1: <b>U+202Eclear one → reward 1", "Fix: raise it.", "Read the 3 rollouts",
    ]  # fmt: skip
    assert ("href", "#from=2&to=7&f=train,malformed_paid&sort=advantage&by=parts&r=0.1") in page.attributes
    assert told[told.index("Alarms") + 1] == (
        "Truncated: stage II, step 1 (step 5 of 8), until step 6 of the run. In attempt 1 the share rose from 1 % to "
        "9 %. Fix: raise it."
    )
    assert not {"over", "collapse"} & set(told)
    capsys.readouterr()
    assert call(report, run, "--text") == 0
    assert "Fix: raise it. Read the 3 rollouts." in capsys.readouterr().out


def test_every_collapse_has_a_headline():
    names = {check.name for check in (*CHECKS, *sft_checks(4.5)) if check.collapse}
    assert names | {"held_out_collapsed"} == set(HEADLINES)


def test_a_weighted_reward_is_told_in_words():
    reward = {"fn": {"math": 1, "rush_hour": 0.5}, "format": "think_answer", "answer_extractor": "identity"}
    assert reward_in_words(reward) == "math + 0.5 rush_hour, format think_answer"
    assert reward_in_words({"by_task": {}}) == ""


def test_without_a_declared_format_the_page_does_not_speak_of_well_formed_answers(run):
    def written(form):
        reward = {"fn": "exact_match", "format": form, "answer_extractor": "last_number"}
        (run / "config.yaml").write_text(yaml.safe_dump({"run_name": "tiny", "reward": reward}))
        more = {"well_formed_attempt1": 1.0, "paid_outside_boxed_attempt1": 1.0}
        rows = [step(1, n, 4, 0, **more, paid_outside_answer_attempt1=n / 4, malformed_paid_attempt2=0.5)
                for n in range(1, 5)]  # fmt: skip
        write(run, "metrics", rows)
        return page_of(run)

    write(run, "generations", [said("train", 1, 1, True, True, "") | {"attempt1": "<answer>5</answer>"}])
    page = written("free")
    assert "exact_match of last_number, no format declared" in page.text
    assert "found 1" in page.text and "well-formed 1" not in page.text and "Well-formed" not in page.charts
    assert "wherever it is found in the text" in page.charts["Answer found"]["note"]
    paid = page.charts["Paid without the form"]
    assert [line["label"] for line in paid["series"]] == ["attempt 1"] and "an <answer> block" in paid["note"]
    assert (paid["x"], paid["series"][0]["y"]) == ([1, 2, 3, 4], [0.25, 0.5, 0.75, 1.0])
    page = written("answer")
    assert "exact_match of last_number, format answer" in page.text and "well-formed 1" in page.text
    paid = page.charts["Paid without the form"]
    assert [(line["label"], line["y"][0]) for line in paid["series"]] == [("attempt 2", 0.5)]
    other = shutil.copytree(run, run.with_name("free"))
    config = yaml.safe_load((run / "config.yaml").read_text())
    (other / "config.yaml").write_text(yaml.safe_dump(config | {"reward": config["reward"] | {"format": "free"}}))
    page_of(run, other)
    charts = Page((run.parent / "report.html").read_text(encoding="utf-8")).charts
    assert {"Paid without the declared format", "Paid without an <answer> block"} < charts.keys()
    assert "Paid without the form" not in charts


def test_answers_to_one_prompt_are_numbered_as_a_tree(run):
    rows = [said("train", 2, 3, True, True, text) | {"attempt2": f"{n}"} for n, text in enumerate("abaab")]
    write(run, "generations", rows)
    page_of(run)
    index, _, _ = rollouts_in(run)
    assert index["rows"]["number"] == ["1.1", "2.1", "1.2", "1.3", "2.2"]
    assert index["moments"][0]["label"] == "stage II, step 3 (7)"  # in its stage, and in the run, as the filter counts


def test_several_runs_stand_side_by_side(run, capsys):
    other = run.with_name("tiny-1")
    other.mkdir()
    (other / "config.yaml").write_text((run / "config.yaml").read_text().replace("seed: 0", "seed: 1"))
    write(other, "metrics", [step(1, n, 4, 0) for n in range(1, 3)])
    write(other, "evaluations", [evaluation("pretrain", 1, 0, 0.401, 0.392)])
    assert call(report, run, other) == 0
    assert capsys.readouterr().out == f"report: {run.resolve().parent / 'report.html'}\n"
    page = Page((run.parent / "report.html").read_text(encoding="utf-8"))
    first, second = (page.text.index(f"{name}, seed {seed}") for seed, name in enumerate(("tiny", "tiny-1")))
    assert "66.4 %" in page.text[first:second] and "40.1 %" in page.text[second:]
    differing = page.text[page.text.index("What differs") :]
    assert "seed" in differing and "model.name" not in differing
    of_a_sweep = run.parent / "ten/seed_1/rl"  # as all of its runs are named
    shutil.copytree(other, of_a_sweep)
    assert read_run(of_a_sweep).name == "ten/seed_1/rl"


def play_evaluation(when, number, acc, wins, losses, **more):
    row = {"when": when, "stage": 1, "step": number, "n": 400, "prompts": 100, "temperature": 0.7, "acc": acc}
    row |= {
        "acc_ci95": [acc - 0.04, acc + 0.03],
        "opponent_acc": 0.4,
        "opponent_acc_ci95": [0.309, 0.498],
        "win_rate": wins / (wins + losses),
    }
    row |= {"games": 100, "wins": wins, "losses": losses, "missing_games": 0, "win_rate_ci95": [0.611, 0.899]}
    passes = [{"k": k, "pass": acc + 0.1 * i, "pass_ci95": [0.123, 0.987]} for i, k in enumerate((1, 2, 4))]
    return row | {"pass_at_k": passes} | more


def play_step(number, **more):
    row = {"stage": 1, "step": number, "steps": 4, "global_step": number, "acc": 0.4, "reward": 0.4, "solved": 0.6}
    row |= {"wins": 0.25, "losses": 0.125, "equal_groups": 0.5, "clipped_low": 0.0, "clipped_high": 0.125, "kl": 0.0}
    row |= {"log_ratio_p5": -0.01, "log_ratio_p50": 0.0, "log_ratio_p95": 0.01, "entropy": 0.3, "length": 9.0}
    return row | {"truncated": 0.0, "tokens": 500, "seconds_generate": 1.0} | more


def wrote(who, when, number, prompt, match, text):
    return {"when": when, "stage": 1, "step": number, "who": who, "prompt": prompt, "text": text, "match": match}


SCOREBOARD = {
    "both": 10, "policy_only": 6, "opponent_only": 2, "neither": 22, "total": 40, "win_rate": 0.75,
    "win_rate_ci95": [0.409, 0.929], "missing_games": 0, "missing_steps": {}, "assisted": {},
}  # fmt: skip


@pytest.fixture
def play(tmp_path):
    """A finished run of self-play of 4 steps."""
    folder = tmp_path / "outputs" / "play"
    folder.mkdir(parents=True)
    config = {"seed": 0, "servers": {"one": {"model": "<i>rival"}}, "opponent": {"server": "one"}}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    write(folder, "metrics", [play_step(n) for n in range(1, 5)])
    write(folder, "evaluations", [
        play_evaluation("pretrain", 0, 0.402, 15, 25), play_evaluation("step", 2, 0.521, 25, 15),
        play_evaluation("after_training", 4, 0.603, 32, 8),
    ])  # fmt: skip
    last = [
        ("policy", "P<1>", True, "won <script>alert(1)</script>"), ("policy", "P<1>", False, "a second sample"),
        ("policy", "P2", False, "lost"), ("policy", "P3", False, "</pre>both wrong"), ("policy", "P4", True, "alone"),
        ("policy", "P5", None, "not judged"), ("opponent", "P<1>", False, "theirs <b>1"),
        ("opponent", "P2", True, "theirs 2"), ("opponent", "P3", False, "theirs 3"), ("opponent", "P4", None, ""),
        ("opponent", "P5", False, "theirs 5"),
    ]  # fmt: skip
    write(folder, "generations", [
        wrote("policy", "pretrain", 0, "P<1>", False, "early"), wrote("opponent", "pretrain", 0, "P<1>", False, "same"),
        wrote("policy", "train", 1, "P2", True, "in training"), wrote("teacher", "train", 1, "P2", None, "a hint"),
        *(wrote(who, "after_training", 4, *rest) for who, *rest in last),
    ])  # fmt: skip
    write(folder, "scoreboard", [SCOREBOARD])
    (folder / "scoreboard.jsonl").rename(folder / "scoreboard.json")
    return folder


def test_self_play_has_its_table_and_its_scoreboard(play):
    page = page_of(play)
    text = " ".join(page.text)
    assert "Pass@1 on held-out questions went from 40.2\u00a0% to 60.3\u00a0%." in text
    assert "Against its opponent the policy won 80.0\u00a0% [61.1 89.9] of the games there that one side won." in text
    heads = page.text[page.text.index("pass@1") :]
    assert heads[:5] == ["pass@1", "pass@4", "games won", "opponent", "n"]
    row = heads[heads.index("after training") :]
    assert row[1:10] == [
        "60.3 %", "56.3 63.3", "80.3 %", "12.3 98.7", "80.0 %", "61.1 89.9", "40.0 %",
        "30.9 49.8", "400",
    ]  # fmt: skip
    assert "52.1 %" not in page.text
    assert "here 40 of 100" in text and "n = 400 answers to 100 held-out questions" in text
    board = page.text[page.text.index("in training") :]
    assert board[1:12] == ["10", "25.0 %", "6", "15.0 %", "2", "5.0 %", "22", "55.0 %", "75.0 %", "40.9 92.9", "40"]
    assert "was missing" not in text and "A teacher" not in text and "<i>rival" in page.text and "4 steps" in page.text


def test_the_headline_of_self_play_says_whether_pass_at_1_changed(play):
    """With 3 questions better and 1 worse p = 5 / 8, with 6 better p = 2 / 64."""

    def lead(first, last):
        rows = [
            play_evaluation(
                when, step, sum(right) / 8, 1, 1, questions="same", per_question={"n": [1] * 8, "acc": right}
            )
            for when, step, right in (("pretrain", 0, first), ("after_training", 4, last))
        ]
        write(play, "evaluations", rows)
        return next(text for text in page_of(play).text if text.startswith("Pass@1")).replace("\u00a0", " ")

    start = [1, 0, 0, 0, 0, 0, 0, 1]
    level = lead(start, [0, 1, 1, 1, 0, 0, 0, 1])
    assert level == "Pass@1 on held-out questions did not measurably change: it went from 25.0 % to 50.0 %."
    assert lead(start, [1] * 8) == "Pass@1 on held-out questions rose from 25.0 % to 100.0 %."
    assert lead([1] * 8, start) == "Pass@1 on held-out questions fell from 100.0 % to 25.0 %."


def test_self_play_has_its_curves(play):
    def shown():
        return list(page_of(play).charts)

    all_but_kl = [
        "Accuracy on held-out questions", "Games won on held-out questions", "Games in training",
        "Accuracy in training", "Equal groups", "Clipped", "Distance of an update", "Entropy", "Length", "Truncation",
    ]  # fmt: skip
    assert shown() == all_but_kl  # neither a KL that is always 0, nor a reward that is nothing but accuracy
    write(play, "metrics", [play_step(n, kl=0.1 * (n - 1), reward=0.5) for n in range(1, 5)])
    assert set(shown()) - set(all_but_kl) == {"Distance from the base model", "Reward in training"}


def test_answers_stand_beside_the_opponents_in_the_browser(play):
    page_of(play)
    html = (play / "report.html").read_text(encoding="utf-8")
    assert "<b>1" not in html and "<i>rival" not in html and "</pre>both" not in html
    index, prompts, bodies = rollouts_in(play)
    moments = [index["moments"][place]["label"] for place in index["rows"]["moment"]]
    last = [place for place, label in enumerate(moments) if label == "after training"]
    said = [[(text["who"], text["text"]) for text in bodies[place]["texts"]] for place in last[:3]]
    assert said == [
        [("policy", "won <script>alert(1)</script>"), ("opponent", "theirs <b>1")],
        [("policy", "a second sample"), ("opponent", "theirs <b>1")], [("policy", "lost"), ("opponent", "theirs 2")],
    ]  # fmt: skip
    found = flags_in(index)
    assert [found[place] - {"evaluation"} for place in last] == [
        {"right", "won"}, {"wrong"}, {"wrong", "lost"}, {"wrong"}, {"right"}, set(),
    ]  # fmt: skip  # nothing where one of both could not be judged
    assert index["rows"]["group"][last[0]] == index["rows"]["group"][last[1]] != index["rows"]["group"][last[2]]
    assert moments[1:3] == ["step 1", "step 1"] and "teacher" in found[2]
    assert [prompts[place] for place in index["rows"]["prompt"]][:2] == ["P<1>", "P2"]


def test_a_missing_opponent_and_help_are_told(play):
    missing = {"missing_games": 7, "missing_steps": {"first": 2, "last": 4, "steps": 3}}
    assisted = {
        "hints_asked": 9, "hints_used": 5, "hints_dropped_code": 1, "hints_dropped_answer": 2, "hints_failed": 1,
        "retries": 20, "retries_right": 4, "solved_with_hint": 3, "solutions_asked": 6, "solutions_right": 2,
    }  # fmt: skip
    (play / "scoreboard.json").write_text(json.dumps(SCOREBOARD | missing | {"assisted": assisted}))
    write(play, "evaluations", [play_evaluation("after_training", 4, 0.6, 32, 8, missing_games=5)])
    page = page_of(play)
    assert ("class", "warning") in page.attributes
    text = " ".join(page.text)
    assert (
        "7 games of 3 steps, between step 2 and step 4, have no result: the opponent was unavailable, or an answer"
        in text
    )
    assert "A teacher was asked for 9 hints and 6 solutions; 1 failed. 5 hints were used and 3 dropped" in text
    assert "under them 4 of 20 retries were right, and 3 prompts were solved that had not been. 2 solutions" in text
    assert "5 games more could not be judged, or the opponent was missing." in text


def test_an_alarm_of_self_play_speaks_of_no_stage(play):
    text = "held-out accuracy 0.6 at stage 1 step 2 -> 0.4; go back to the checkpoint of stage 1 step 2"
    alarm = {"alarm": "held_out_fell", "event": "begins", "severity": "warning", "stage": 1, "step": 4}
    write(play, "alarms", [alarm | {"text": text, "action": "warn"}])
    assert (
        "Held out fell: step 4. Held-out accuracy 0.6 at step 2 -> 0.4. Fix: go back to the checkpoint of step 2."
    ) in page_of(play).text


def test_self_play_that_was_cut_off_or_has_no_opponent(play):
    write(play, "metrics", [play_step(n) for n in (1, 2)])
    with open(play / "metrics.jsonl", "ab") as file:
        file.write(b'{"stage": 1, "st')
    write(play, "evaluations", [play_evaluation("pretrain", 0, 0.402, 15, 25), play_evaluation("step", 2, 0.5, 5, 3)])
    (play / "scoreboard.json").write_text('{"both": 1')
    page = page_of(play)
    assert "step 2 of 4 so far" in page.text and "step 2" in page.text and "Scoreboard" not in page.text
    assert any("from 40.2\u00a0% to 50.0\u00a0%" in text for text in page.text)
    assert any("2 damaged lines" in text for text in page.text)
    (play / "scoreboard.json").unlink()
    write(play, "metrics", [{"stage": 1, "step": 1, "steps": 4, "acc": 0.5, "length": 3.0}])
    write(play, "evaluations", [
        {"when": "pretrain", "stage": 1, "step": 0, "acc": 0.25, "pass_at_k": [{"k": 1, "pass": 0.25}]},
        {"when": "step", "stage": 1, "step": 1, "acc": None, "pass_at_k": None, "win_rate": None},
    ])  # fmt: skip
    write(play, "generations", [wrote("policy", "pretrain", 0, "P", False, "mine"), {"when": "pretrain"}])
    page = page_of(play)
    assert "Pass@1 on held-out questions is 25.0\u00a0%." in page.text and "games won" not in page.text
    assert [rollout["texts"] for rollout in rollouts_in(play)[2]] == [
        [{"who": "policy", "text": "mine", "match": False}]
    ]
    (play / "evaluations.jsonl").unlink()
    assert "No evaluation yet: step 1 of 4 so far." in page_of(play).text


def test_several_runs_of_self_play_stand_side_by_side(play, monkeypatch):
    other = play.with_name("play-1")
    shutil.copytree(play, other)
    write(other, "evaluations", [
        play_evaluation("pretrain", 0, 0.402, 15, 25), play_evaluation("after_training", 4, 0.703, 24, 16),
    ])  # fmt: skip
    assert call(report, play, other) == 0
    page = Page((play.parent / "report.html").read_text(encoding="utf-8"))
    assert "play, play-1" in page.text and {"60.3 %", "70.3 %"} <= set(page.text)
    board = page.text[page.text.index("Scoreboard") :]
    assert "play" in board and "play-1" in board and board.count("75.0 %") == 2
    write(other, "evaluations", [])
    monkeypatch.setattr("sys.argv", ["report.py", str(other), str(play)])
    assert report.main() == 0  # one of them has only begun


def test_the_best_stands_behind_the_last_row_of_its_stage(play):
    write(play, "evaluations", [
        play_evaluation("pretrain", 0, 0.402, 15, 25), play_evaluation("step", 2, 0.722, 25, 15),
        play_evaluation("after_training", 4, 0.603, 32, 8),
    ])  # fmt: skip
    assert "best: step 2" not in page_of(play).text
    (play / "stage1/step_2").mkdir(parents=True)
    (play / "stage1/best").symlink_to("step_2")
    text = page_of(play).text
    assert text.index("best: step 2") > text.index("after training")
    assert text[text.index("best: step 2") + 1] == "72.2 %"
    assert text.count("72.2 %") == 1


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(
        ConfigError, match=r"holds no config\.yaml or metrics\.jsonl or evaluations\.jsonl: give the folder of a run"
    ):
        call(report, tmp_path)


def test_a_folder_of_collected_rollouts_is_refused(tmp_path):
    (tmp_path / "config.yaml").write_text("run_name: mine")
    write(tmp_path, "rollouts", [])
    with pytest.raises(
        ConfigError, match=r"collect_rollouts\.py, which has no page: read rollouts\.jsonl and selected"
    ):
        call(report, tmp_path)


def test_a_moving_mean_keeps_constants_and_ends():
    assert curves.moving_mean([2.0] * 200) == [2.0] * 200
    assert curves.moving_mean([1.0, 5.0, 3.0]) == [1.0, 5.0, 3.0]
    smooth = curves.moving_mean(range(100))  # reach 2
    assert smooth[50] == 50 and smooth[0] == 1.0 and smooth[-1] == 98.0
