import csv
import json
import math
import time

import pyarrow.parquet
import pytest

from data.builders import write_rows
from lib.core.config import ChatPrompts, Dataset, ScoreConfig, SFTDataset
from lib.core.errors import ConfigError
from lib.rl.prompts import chat_of
from lib.rl.task import load_data
from lib.text.chats import text_of
from lib.text.data import load_splits, parted

COLUMNS = ("question", "answer")


def rows(first, last):
    return [{"question": f"{number}+1", "answer": str(number + 1)} for number in range(first, last)]


def write(path, content):
    write_rows(path, content)
    return path


def question(row):
    return str(row["question"])


def load(path, columns=COLUMNS, asks=question, **options):
    return load_splits(Dataset(name=str(path), **{"test_split_size": 2, **options}), columns, asks)


def parts(path, content, **options):
    """Which of the rows are held out, in the order in which they are reported, and which are trained on."""
    splits = load(write(path, content), **options)
    return [content.index(row) for row in splits.test], [content.index(row) for row in splits.train]


def message(path, columns=COLUMNS, **options):
    with pytest.raises(ConfigError) as caught:
        load(path, columns, **options)
    return str(caught.value)


def test_of_one_file_any_rows_are_held_out_for_every_run_the_same(tmp_path):
    test, train = parts(tmp_path / "sums.jsonl", rows(0, 400), test_split_size=100)
    assert sorted(test + train) == list(range(400)) and train == sorted(train)
    assert 15 < sum(index < 100 for index in test) < 35  # a quarter of every quarter,
    assert 3 < sum(index < 100 for index in test[:40]) < 17  # and of what is reported, the first ones
    assert 130 < sum(test[:40]) / 40 < 270
    assert parts(tmp_path / "sums.jsonl", rows(0, 400), test_split_size=40)[0] == test[:40]
    turned, content = load(write(tmp_path / "turned.jsonl", rows(0, 400)[::-1]), test_split_size=100), rows(0, 400)
    assert [content.index(row) for row in turned.test] == test  # whatever the order of the file
    longer = parts(tmp_path / "longer.jsonl", rows(0, 404), test_split_size=100)[0]
    assert len(set(longer) & set(test)) >= 96  # new rows take their share, the others stay where they are
    splits = load(tmp_path / "sums.jsonl", test_split_size=100)
    assert splits.notes == ["held out are 100 of 400 rows, drawn at random: the same ones for every seed"]
    assert "sums.jsonl" in splits.source
    assert str(splits.test_places[0]) == f"line {test[0] + 1} of '{tmp_path / 'sums.jsonl'}'"


def test_a_family_is_held_out_or_trained_on(tmp_path):
    families = [f"{'kind' * (number % 2)}{number % 40}" for number in range(300)]
    content = [{**row, "kin": name} for row, name in zip(rows(0, 300), families, strict=True)]
    splits = load(write(tmp_path / "kin.jsonl", content), test_split_size=50, family_field="kin")
    assert len(splits.test) == 50
    assert not {row["kin"] for row in splits.test} & {row["kin"] for row in splits.train}
    assert len({row["kin"] for row in splits.test}) == 7  # of 7 or 8 rows each, the last one not as a whole
    unused = 300 - 50 - len(splits.train)
    assert splits.notes == [
        "held out are 50 of 300 rows, drawn at random, whole families (dataset.family_field: kin): the same ones for "
        "every seed",
        f"{unused} rows to train on were removed: they ask what a held-out row asks, or are of its family",
    ]
    chosen, reported = parted(splits.test, 12, splits.group_of)
    assert 5 <= len(chosen) <= 12 and not {row["kin"] for row in chosen} & {row["kin"] for row in reported}
    folder = tmp_path / "two"
    folder.mkdir()
    write(folder / "train.jsonl", content[:200])
    write(folder / "test.jsonl", content[210:220])
    splits = load(folder, test_split_size=10, family_field="kin")
    assert len(splits.train) == 200 - 10 * 5  # each of ten families has five rows among 200
    assert "column 'family' is missing from line 1 of" in message(folder, family_field="family")


@pytest.mark.parametrize(
    "other",
    [
        {"question": "11+1", "answer": 12},
        {"question": "11+1", "answer": "twelve"},
        {"question": " 11+1\n", "answer": "12"},
        {"question": "11+1", "answer": "12", "hint": "count"},
    ],
)
@pytest.mark.parametrize("one_file", [True, False])
def test_a_question_that_is_held_out_is_not_trained_however_its_answer_is_written(tmp_path, other, one_file):
    held_out = rows(11, 12)[0]
    if one_file:
        path = write(
            tmp_path / "a.jsonl", [row for number in range(40) for row in (rows(number, number + 1)[0], other)]
        )
        asked = load(path, test_split_size=30)
        assert not {question(row).strip() for row in asked.train} & {question(row).strip() for row in asked.test}
    write(tmp_path / "train.jsonl", [*rows(0, 3), other])
    write(tmp_path / "test.jsonl", [held_out])
    (tmp_path / "a.jsonl").unlink(missing_ok=True)
    splits = load(tmp_path, test_split_size=1)
    assert (splits.train, splits.test) == (rows(0, 3), [held_out])
    assert splits.notes == ["1 rows to train on were removed: they ask what a held-out row asks"]


@pytest.mark.parametrize("other", ["what is 11 plus 1?", "What is 11 plus 1", "What is  11 plus 1 ?"])
@pytest.mark.parametrize("family_field", [None, "kin"])
def test_a_held_out_question_is_not_trained_in_other_letters_or_without_its_mark(tmp_path, other, family_field):
    asked = {"question": "What is 11 plus 1?", "answer": "12", "kin": "a"}
    write(tmp_path / "train.jsonl", [{**row, "kin": "b"} for row in [*rows(0, 3), asked | {"question": other}]])
    write(tmp_path / "test.jsonl", [asked])
    splits = load(tmp_path, test_split_size=1, family_field=family_field)
    assert len(splits.train) == 3 and splits.notes[0].startswith("1 rows to train on were removed: they ask what a")


def test_where_only_first_rows_are_used_that_is_said(tmp_path):
    write(tmp_path / "train.jsonl", rows(0, 5))
    write(tmp_path / "validation.jsonl", rows(10, 14))
    assert load(tmp_path, test_split_size=4).notes == []
    assert load(tmp_path, max_train_rows=5, test_split_size=4).notes == []
    assert load(tmp_path, max_train_rows=4).notes == [
        f"held out are the first 2 of 4 rows of '{tmp_path}' (validation)",
        "train rows are the first 4 that remain (dataset.max_train_rows)",
    ]


def test_rows_to_choose_by_are_no_others(tmp_path):
    every = rows(0, 40)
    chosen, others = parted(every, 7, question)
    assert len(chosen) == 7 and sorted(chosen + others, key=str) == sorted(every, key=str)
    assert not [row for row in chosen if row in others]
    assert len(parted(every, 1000, question)[0]) == 10  # at most a quarter
    assert parted(every, 0, question) == ([], every) and parted(every[:3], 100, question) == ([], every[:3])
    again, _ = parted(every[::-1], 7, question)  # whatever the order of the rows,
    assert again == chosen[::-1]
    assert all(row in parted(every, 8, question)[0] for row in chosen)  # and more of them are these and others


def test_rows_that_ask_the_same_are_in_one_part():
    every = rows(0, 10) + [{**row, "answer": f"0{row['answer']}"} for row in rows(0, 10)] + rows(10, 20)
    chosen, others = parted(every, 7, question)
    assert len(chosen) + len(others) == 30 and len(chosen) == 7
    assert not {question(row) for row in chosen} & {question(row) for row in others}


def test_unused_test_rows_do_not_reach_train(tmp_path):
    write(tmp_path / "train.jsonl", rows(0, 3))
    write(tmp_path / "test.jsonl", rows(10, 14))
    splits = load(tmp_path)
    assert (splits.train, splits.test) == (rows(0, 3), rows(10, 12))


def test_a_train_row_that_is_held_out_too_is_removed_and_counted(tmp_path):
    write(tmp_path / "train.jsonl", rows(0, 3) + [{**rows(11, 12)[0], "id": "other columns may differ"}] + rows(12, 13))
    write(tmp_path / "test.jsonl", rows(10, 14))
    splits = load(tmp_path)
    assert splits.notes[1:] == ["1 rows to train on were removed: they ask what a held-out row asks"]
    assert splits.train == rows(0, 3) + rows(12, 13)  # 12 stands among the unused test rows only
    assert len(load(tmp_path, columns=(), asks=str).train) == 5  # who asks with all columns asks something else


def test_max_train_rows_counts_rows_that_are_kept(tmp_path):
    write(tmp_path / "train.jsonl", rows(10, 11) + rows(0, 5))
    write(tmp_path / "test.jsonl", rows(10, 14))
    assert load(tmp_path, max_train_rows=2).train == rows(0, 2)


def test_a_split_may_be_chosen_and_cut(tmp_path):
    write(tmp_path / "validation.jsonl", rows(0, 10))
    write(tmp_path / "train.jsonl", rows(20, 30))

    def used(**options):
        splits = load(tmp_path, **options)
        assert len(splits.test) == 2
        return sorted(splits.train + splits.test, key=lambda row: int(row["answer"]))

    assert used(split="train") == rows(20, 30)
    assert used(split="validation[:4]") == rows(0, 4)
    assert used(split="validation[50%:]") == rows(5, 10)
    assert load(tmp_path).test == rows(0, 2)  # validation stands in for test


@pytest.mark.parametrize("kind", ["json", "lines.json", "csv", "parquet", "shards", "saved", "saved dict"])
def test_every_local_format_gives_the_same_rows(tmp_path, monkeypatch, kind):
    import datasets
    import pyarrow
    import pyarrow.parquet

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    path, content = tmp_path / kind, rows(0, 5)
    if kind == "json":
        path = tmp_path / "rows.json"
        path.write_text(json.dumps(content, indent=2))
    elif kind == "lines.json":
        write(path, content)
    elif kind == "csv":
        path = tmp_path / "rows.csv"
        path.write_text(
            "\ufeffquestion,answer\n" + "".join(f'"{row["question"]}",{row["answer"]}\n' for row in content)
        )
    elif kind == "parquet":
        path = tmp_path / "rows.parquet"
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(content), path)
    elif kind == "shards":
        path.mkdir()
        for number in range(2):
            part = pyarrow.Table.from_pylist(content[3 * number : 3 * number + 3])
            pyarrow.parquet.write_table(part, path / f"train-0000{number}-of-00002.parquet")
    elif kind == "saved":
        datasets.Dataset.from_list(content).save_to_disk(path)
    else:
        datasets.DatasetDict(train=datasets.Dataset.from_list(content)).save_to_disk(path)
    splits = load(path)
    drawn = load(write(tmp_path / "drawn.jsonl", content))
    assert (splits.test, splits.train) == (drawn.test, drawn.train)
    assert not (tmp_path / "cache").exists()


def test_sft_rows_need_no_columns_and_no_held_out_part(tmp_path):
    chat = [{"messages": [{"role": "user", "content": "hi"}]}]
    splits = load_splits(SFTDataset(name=str(write(tmp_path / "chats.jsonl", chat)), test_split_size=0), (), str)
    assert (splits.train, splits.test) == (chat, [])


def test_the_fingerprint_follows_every_row_that_is_used(tmp_path):
    def of(content, **options):
        return load(write(tmp_path / "a.jsonl", content), **options).fingerprint

    assert of(rows(0, 5)) == of(rows(0, 5))
    assert len({of(rows(0, 5)), of(rows(0, 6)), of(rows(0, 5), test_split_size=3), of(rows(1, 5) + rows(0, 1))}) == 4
    assert of(rows(0, 6), max_train_rows=3) == of(rows(0, 6), max_train_rows=3) != of(rows(0, 6))


def test_broken_lines_are_listed_up_to_ten_and_counted(tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_text('{"question": "1", "answer": "1"}\n\n[1]\n' + "{oops\n" * 11)
    text = message(path)
    assert "12 bad rows" in text and "line 3: got list, expected a JSON object" in text and "line 4: " in text
    assert "line 12: " in text and "line 13" not in text and "and 2 more" in text


def test_one_broken_line_is_one(tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"question": "1", "answer": "1"}\n[1]\n')
    assert "has 1 bad row; fix or remove it:\n" in message(tmp_path / "bad.jsonl")


def test_csv_rows_of_another_width_are_named(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text("question,answer\na,1\nb\nc,3,4\n")
    assert "line 3: fewer values than the 2 columns" in message(path)
    assert "line 4: more values than the 2 columns" in message(path)


def test_text_that_is_not_utf8_is_named(tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b'{"question": "1"}\n{"question": "\xff"}\n')
    assert "line 2: not UTF-8: save the file as UTF-8" in message(path)
    (tmp_path / "bad.json").write_bytes(b'[{"question": "1"},\n{"question": "\xff"}]\n')
    assert f"line 2 of '{tmp_path}/bad.json' is not UTF-8: save the file as UTF-8" in message(tmp_path / "bad.json")
    (tmp_path / "bad.csv").write_bytes(b"question,answer\n" + b"1,2\n" * 9_000 + b"caf\xe9,2\n")
    assert f"line 9002 of '{tmp_path}/bad.csv' is not UTF-8: save the file as UTF-8" in message(tmp_path / "bad.csv")


def test_a_line_that_was_cut_off_has_one_number(tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"question": "1"}\n{"question": "2", "answer"\n')
    assert message(tmp_path / "bad.jsonl").endswith("line 2: not JSON (Expecting ':' delimiter: column 28)")


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        ([], {}, "has no rows"),
        ([{"Question": "1", "answer": "2"}] * 4, {}, "'question' is missing from line 1"),
        ([{"Question": "1", "answer": "2"}] * 4, {}, "which has 'Question', 'answer'"),
        ([{"Question": "1", "answer": "2"}] * 4, {}, "did you mean 'Question'?"),
        (rows(0, 3) + [{"question": None, "answer": "1"}], {}, "'question' is empty in line 4"),
        (rows(0, 3) + [{"question": "half \ud83d", "answer": "1"}], {}, "of line 4 of 'rows.jsonl' holds half a char"),
        (rows(0, 3), {"test_split_size": 3}, "got 3, but 'rows.jsonl' has 3 rows"),
        (rows(0, 3), {"test_split_size": 4}, "must be left to train on: give more rows, or lower it below 3"),
        (rows(0, 1), {"test_split_size": 1}, "some must be left to train on: give more rows"),
        (rows(0, 3), {"split": "trian"}, "did you mean 'train'?"),
        (rows(0, 3), {"split": "train[1"}, "expected a name or a part such as train[:2000]"),
        (rows(0, 1) * 4, {}, "no row of 'rows.jsonl' is left to train on, since 2 ask what a held-out row asks"),
    ],
)
def test_mistakes_in_the_data_are_one_sentence(tmp_path, monkeypatch, content, options, expected):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "rows.jsonl", content)
    assert expected in message("rows.jsonl", **options)
    assert "below 1" not in message("rows.jsonl", **options)


def test_mistakes_in_the_source_are_one_sentence(tmp_path):
    assert "there is no file or folder" in message(tmp_path / "none.jsonl")
    assert "holds no .json .jsonl .csv .parquet file" in message(tmp_path)
    assert "expected a file that ends in .json" in message(write(tmp_path / "rows.txt", rows(0, 3)))
    (tmp_path / "no.parquet").write_text("x")
    assert "is not Parquet" in message(tmp_path / "no.parquet")
    (tmp_path / "no.json").write_text("[1, 2")
    assert "is not JSON" in message(tmp_path / "no.json")
    (tmp_path / "both").mkdir()
    write(tmp_path / "both" / "train.jsonl", rows(0, 3))
    (tmp_path / "both" / "train.csv").write_text("question,answer\n1,2\n")
    assert "as .csv and as .jsonl: remove one" in message(tmp_path / "both")
    (tmp_path / "other").mkdir()
    write(tmp_path / "other" / "one.jsonl", rows(0, 3))
    write(tmp_path / "other" / "two.jsonl", rows(0, 3))
    assert "has the splits one, two, expected train and test" in message(tmp_path / "other")
    write(tmp_path / "other" / "train.jsonl", rows(0, 3))
    write(tmp_path / "other" / "test.jsonl", rows(5, 6))
    assert "(test) has 1 rows: lower it to 1" in message(tmp_path / "other")


@pytest.mark.parametrize("offline", [True, False])
def test_an_unreachable_hub_is_one_sentence_and_soon(tmp_path, monkeypatch, offline):
    import datasets
    from huggingface_hub import constants

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", offline)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")  # the discard port: refused at once
    started = time.monotonic()
    text = message("nobody/nothing", config_name="main")
    assert text == (
        "dataset.name: data set 'nobody/nothing' could not be loaded: not a local path, and the Hugging Face Hub "
        "cannot be reached; give dataset.name=PATH of a local file, build it as the config's first lines say, or "
        "connect"
    )
    assert time.monotonic() - started < 10
    assert offline == datasets.config.HF_HUB_OFFLINE


def written(path, content):
    """A file of any kind, with blank lines and values of several lines where its kind has them."""
    if path.suffix == ".jsonl":
        path.write_text("\n\n".join(map(json.dumps, content)))
    elif path.suffix == ".json":
        path.write_text(json.dumps(content, indent=2))
    elif path.suffix == ".csv":
        with open(path, "w", newline="") as file:
            writer = csv.DictWriter(file, content[0])
            writer.writeheader()
            writer.writerows({**row, "question": row["question"] + "\n?"} for row in content)
    else:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(content), path)
    return path


@pytest.mark.parametrize(
    ("suffix", "unit", "number"),
    [
        (".jsonl", "line", lambda index: 2 * index + 1),
        (".json", "entry", lambda index: index + 1),
        (".csv", "line", lambda index: 2 * index + 2),
        (".parquet", "row", lambda index: index + 1),
    ],
)
def test_a_place_is_where_an_editor_finds_the_row(tmp_path, suffix, unit, number):
    """Whether it is trained on or held out, in the file itself or in a part of it."""
    path, content = written(tmp_path / f"rows{suffix}", rows(0, 40)), rows(0, 40)
    for split in (None, "train[10:35]"):
        splits = load(path, test_split_size=9, split=split)
        placed = [
            *zip(splits.train, splits.train_places, strict=True),
            *zip(splits.test, splits.test_places, strict=True),
        ]
        assert len(placed) == (25 if split else 40)
        for row, place in placed:
            index = [entry["answer"] for entry in content].index(row["answer"])
            assert str(place) == f"{unit} {number(index)} of '{path}'"
    for bad in (0, 17, 39):
        emptied = [{**row, "answer": None if index == bad else row["answer"]} for index, row in enumerate(content)]
        if suffix != ".csv":
            told = message(written(path, emptied), test_split_size=9)
            assert f"column 'answer' is empty in {unit} {number(bad)} of '{path}', which has" in told


def test_rows_of_a_split_in_several_files_are_counted_in_their_own(tmp_path):
    for shard in range(3):
        written(tmp_path / f"train-0000{shard}-of-00003.jsonl", rows(10 * shard, 10 * shard + 10))
    written(tmp_path / "test.jsonl", [*rows(50, 52), {"question": "x"}])
    splits = load(tmp_path)
    assert str(splits.train_places[23]) == f"line 7 of '{tmp_path}/train-00002-of-00003.jsonl'"
    assert list(map(str, splits.test_places)) == [f"line {line} of '{tmp_path}/test.jsonl'" for line in (1, 3)]
    assert f"missing from line 5 of '{tmp_path}/test.jsonl'" in message(tmp_path, test_split_size=3)


def test_a_row_whose_prompt_can_not_be_read_is_named(tmp_path):
    content = [{"chat": [{"role": "user", "content": str(number)}]} for number in range(30)]
    content[20]["chat"] = "hello"
    path = written(tmp_path / "chats.jsonl", content)
    prompts = ChatPrompts(messages_field="chat")
    for size in (1, 29):
        with pytest.raises(
            ConfigError, match=r"line 41 of '.*chats.jsonl': prompts.messages_field: 'chat' has 'hello'"
        ):
            load(path, ["chat"], lambda row: text_of(chat_of(row, prompts)), test_split_size=size)


def test_a_column_may_have_messages_as_arrays():
    """As data sets with a feature of sequences give them."""
    prompts, talk = ChatPrompts(messages_field="chat"), [("system", "s"), ("user", "u")]
    chat = [{"role": role, "content": text} for role, text in talk]
    columns = {"role": ["system", "user"], "content": ["s", "u"]}
    assert chat_of({"chat": columns}, prompts) == chat_of({"chat": chat}, prompts) == chat
    for wrong in ({"role": ["user"], "content": []}, {"role": "user", "content": "u"}, {}):
        with pytest.raises(ConfigError, match=r"prompts\.messages_field: 'chat' has"):
            chat_of({"chat": wrong}, prompts)


def answered(path, content, reward=None, **dataset):
    """What load_data makes of these rows, whose answers stand after ####."""
    config = {
        "run_name": "x", "model": {"name": "none"}, "prompts": {"user": "{question}", "self_correction": "R"},
        "reward": reward or {"target_extractor": "gsm8k_hash"},
        "dataset": {"name": str(written(path, content)), "test_split_size": 15, **dataset},
    }  # fmt: skip
    return load_data(ScoreConfig(**config))[0]


@pytest.mark.parametrize("bad", range(0, 40, 7))
def test_a_row_without_a_right_answer_is_left_out_and_named(tmp_path, bad):
    """Train rows and held-out ones; some of either come before it."""
    path, content = tmp_path / "a.json", [{**row, "answer": f"#### {row['answer']}"} for row in rows(0, 40)]
    whole = answered(path, content)
    is_held_out = content[bad] in whole.test
    content[bad] = {**content[bad], "answer": "nobody knows"}
    splits = answered(path, content)
    assert splits.notes[-1] == (
        f"{1 - is_held_out} of 25 train and {is_held_out + 0} of 15 held-out rows have no target and are left out: "
        f"entry {bad + 1} of '{path}' (reward.target_extractor 'gsm8k_hash' finds none in 'nobody knows')"
    )
    assert splits.train == [row for row in whole.train if row["question"] != content[bad]["question"]]
    assert splits.test == [row for row in whole.test if row["question"] != content[bad]["question"]]
    for row, place in zip(splits.train + splits.test, splits.train_places + splits.test_places, strict=True):
        assert row == content[place.number]  # those behind it, too
    assert splits.fingerprint == answered(path, content).fingerprint != whole.fingerprint  # what a resume compares


def test_rows_without_a_right_answer_are_counted_and_the_first_are_named(tmp_path):
    content = [{**row, "answer": f"#### {row['answer']}"} for row in rows(0, 40)]
    for number, answer in {4: None, 11: " ", 12: "?", 30: "x"}.items():
        content[number]["answer"] = answer
    del content[4]["answer"]
    splits = answered(tmp_path / "a.jsonl", content, test_split_size=1)
    counts, _, named = splits.notes[-1].partition(": ")
    assert "4 of 39 train and 0 of 1 held-out" in counts and len(splits.train) == 35
    name = tmp_path / "a.jsonl"
    assert named == (
        f"line 9 of '{name}' (column 'answer' is missing; it has question), "
        f"line 23 of '{name}' (reward.target_extractor 'gsm8k_hash' finds none in ' '), "
        f"line 25 of '{name}' (reward.target_extractor 'gsm8k_hash' finds none in '?'), ..."
    )


@pytest.mark.parametrize(
    ("name", "nan", "line"), [("a.jsonl", math.nan, 15), ("a.csv", "nan", 16), ("b.csv", "NaN", 16)]
)
def test_nan_is_no_target(tmp_path, name, nan, line):
    content = [{**row, "answer": nan if number == 7 else row["answer"]} for number, row in enumerate(rows(0, 40))]
    splits = answered(tmp_path / name, content, reward={"target_extractor": "identity"})
    assert splits.notes[-1].endswith(f": line {line} of '{tmp_path / name}' ('answer' is NaN)")
    assert len(splits.train) + len(splits.test) == 39


@pytest.mark.parametrize("without", [12, 13])
def test_a_column_that_mostly_has_no_right_answers_is_a_mistake(tmp_path, without):
    """Up to a half of the 25 train rows may be left out."""
    content = [{**row, "answer": f"#### {row['answer']}"} for row in rows(0, 40)]
    whole = answered(tmp_path / "a.json", content)
    bad = [content.index(row) for row in whole.train[:without]]
    content = [{**row, "answer": None} if number in bad else row for number, row in enumerate(content)]
    if without == 12:
        assert len(answered(tmp_path / "a.json", content).train) == 13
        return
    with pytest.raises(ConfigError) as caught:
        answered(tmp_path / "a.json", content)
    assert str(caught.value) == (
        f"dataset.target_field: 13 of 25 train rows have no target, first entry {bad[0] + 1} of '{tmp_path / 'a.json'}'"
        " ('answer' is empty); name another column or extractor, or fix these rows"
    )
    with pytest.raises(ConfigError, match=r"(?s)25 of 25 train .*did you mean 'answer'.*\n.*15 of 15 held-out "):
        answered(tmp_path / "a.json", content, target_field="answr")
