import logging
import os
import random
import resource
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import fewer
from helpers.children import exit_code, fork, in_child

from lib.core.errors import ConfigError, StorageError, run_script
from lib.run import runlog
from lib.run.runlog import RunLog, read_jsonl


def rows_of(directory: Path, stream: str = "metrics") -> list[dict]:
    rows, bad = read_jsonl(directory / f"{stream}.jsonl")
    assert bad == 0
    return rows


def test_rows_are_plain_json_with_schema_and_time(tmp_path):
    text = "naïve 字 \ud800 line\nbreak"
    with RunLog(tmp_path, resume=False) as log:
        log.write("metrics", {"loss": float("nan"), "norm": float("inf"), "n": np.int64(3), "kl": torch.tensor(0.5)})
        log.write("generations", {"text": text, "rewards": {"math": np.float32(1), "list": (1, float("-inf"))}})
    first = (tmp_path / "metrics.jsonl").read_text()
    assert first.startswith('{"schema": 1, "time": "20') and '+00:00", "loss": null, "norm": null, "n": 3' in first
    row = rows_of(tmp_path, "generations")[0]
    assert (row["text"], row["rewards"]) == (text, {"math": 1.0, "list": [1, None]})


def test_unknown_streams_and_values_are_bugs(tmp_path):
    with RunLog(tmp_path, resume=False) as log:
        with pytest.raises(KeyError):
            log.write("metric", {})
        with pytest.raises(TypeError):
            log.write("metrics", {"what": object()})


def test_reader_skips_and_counts_bad_lines(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": \n[1]\n\xff\n{"a": 2}\n{"a": 3')
    assert read_jsonl(path) == ([{"a": 1}, {"a": 2}], 4)


def test_an_existing_run_is_not_overwritten(tmp_path):
    with RunLog(tmp_path, resume=False) as log:
        log.write_config("seed: 1\n")
        log.write("metrics", {"step": 1})
    with pytest.raises(ConfigError, match=r"--resume.*run_name"):
        RunLog(tmp_path, resume=False)
    with RunLog(tmp_path, resume=True) as log:
        log.write("metrics", {"step": 2})
    assert [row["step"] for row in rows_of(tmp_path)] == [1, 2]


def test_a_second_process_is_refused_and_told_the_pid(tmp_path):
    def second():
        with pytest.raises(ConfigError, match=f"process {os.getppid()}:"):
            RunLog(tmp_path, resume=True)

    with RunLog(tmp_path, resume=False):
        assert in_child(second) == 0
    assert in_child(lambda: RunLog(tmp_path, resume=True).close()) == 0


def test_only_the_main_process_touches_the_disk(tmp_path):
    with RunLog(tmp_path / "run", resume=False, is_main=False) as log:
        log.write("metrics", {"step": 1})
        log.write_config("a: 1")
        log.rewind({})
        log.sync()
        assert log.offsets() == {}
    assert not (tmp_path / "run").exists()


def test_a_folder_that_cannot_be_made_is_a_storage_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="a file has the name of a folder: move it away"):
        RunLog(tmp_path / "file" / "run", resume=False)


def test_torn_tail_is_cut_and_kept(tmp_path, caplog):
    for tail in (b'{"step": 2, "lo', b'{"step": 3}'):
        with RunLog(tmp_path, resume=True) as log:
            log.write("metrics", {"step": 1})
        with open(tmp_path / "metrics.jsonl", "ab") as file:
            file.write(tail)
    with RunLog(tmp_path, resume=True) as log:
        log.write("metrics", {"step": 1})
    assert [row["step"] for row in rows_of(tmp_path)] == [1, 1, 1]
    assert (tmp_path / "metrics.torn").read_bytes() == b'{"step": 2, "lo\n{"step": 3}\n'
    assert caplog.text.count("torn by a crash") == 2


def test_a_file_that_is_all_tail_becomes_empty(tmp_path):
    (tmp_path / "metrics.jsonl").write_bytes(b"\0" * 100)
    RunLog(tmp_path, resume=True).close()
    assert (tmp_path / "metrics.jsonl").read_bytes() == b""


def test_rewind_forgets_rows_after_the_checkpoint(tmp_path, caplog):
    with RunLog(tmp_path, resume=False) as log:
        log.write("metrics", {"step": 1})
        offsets = log.offsets()
        del offsets["failures"]
        log.write("metrics", {"step": 2})
        log.write("failures", {"step": 2})
        log.rewind(offsets)
        log.write("metrics", {"step": 2, "again": True})
        assert [row["step"] for row in rows_of(tmp_path)] == [1, 2]
        assert rows_of(tmp_path, "failures") == []
        log.rewind({"metrics": 10**6})
        assert "rows are missing" in caplog.text and len(rows_of(tmp_path)) == 2


def test_a_limited_stream_keeps_its_newest_rows_whatever_is_rewound(tmp_path):
    """Against a list: rows are written, the run goes back to checkpoints, ends and starts again."""
    dice, limit = random.Random(3), {"generations": 4000}
    log, expected, known = RunLog(tmp_path, resume=False, limits=limit), [], [(0, {})]

    def kept():
        files = sorted(tmp_path.glob("generations.*.jsonl"), key=lambda path: int(path.name.split(".")[1]))
        return [row["n"] for path in [*files, tmp_path / "generations.jsonl"] for row in read_jsonl(path)[0]]

    for n in range(600):
        log.write("generations", {"n": n, "text": "x" * dice.randrange(60)})
        expected.append(n)
        if dice.random() < 0.5:
            log.sync()
            known.append((len(expected), log.offsets()))
            assert sum(path.stat().st_size for path in tmp_path.glob("generations*.jsonl")) <= 4000 + 1000
        if dice.random() < 0.05:
            length, offsets = known[dice.randrange(max(0, len(known) - 4), len(known))]
            if dice.random() < 0.5:
                log.close()
                log = RunLog(tmp_path, resume=True, limits=limit)
            log.rewind(offsets)
            del expected[length:]
            known = [entry for entry in known if entry[0] <= length]
            assert log.offsets().get("generations") == offsets.get("generations", 0)
        if dice.random() < 0.2:
            found = kept()
            assert found == expected[len(expected) - len(found) :] and (len(found) > 15 or len(found) == len(expected))
    assert len(list(tmp_path.glob("generations.*.jsonl"))) <= 2 and len(kept()) < len(expected)
    log.rewind({"generations": 10})  # long deleted
    assert kept() == []
    log.close()


@pytest.mark.parametrize("size", [200, 3_000, 2_000_000])
def test_kill_9_loses_nothing_that_was_synced(tmp_path, size):
    rng = random.Random(size)
    for kill in range(fewer(40, 10)):
        run = tmp_path / str(kill)
        reader, writer = os.pipe()

        def write_forever(run=run, writer=writer):
            with RunLog(run, resume=False) as log:
                for step in range(10_000):
                    log.write("generations", {"step": step, "text": "x" * size})
                    if step % 3 == 2:
                        log.sync()
                        os.write(writer, bytes([step % 251]))

        pid = fork(write_forever)
        os.close(writer)
        synced = len(os.read(reader, 1))
        time.sleep(rng.random() * 0.01)
        os.kill(pid, signal.SIGKILL)
        assert exit_code(pid) == -signal.SIGKILL
        synced += len(os.read(reader, 10_000))
        os.close(reader)
        RunLog(run, resume=True).close()
        rows = rows_of(run, "generations")
        assert [row["step"] for row in rows] == list(range(len(rows)))
        assert len(rows) >= 3 * synced > 0
        (run / "generations.jsonl").unlink()


def test_kill_in_the_middle_of_a_write(tmp_path, monkeypatch):
    real = os.write

    def write_half(descriptor, data):
        real(descriptor, data[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)

    def child():
        log = RunLog(tmp_path, resume=False)
        log.write("metrics", {"step": 1})
        monkeypatch.setattr(os, "write", write_half)
        log.write("metrics", {"step": 2})

    assert in_child(child) == -signal.SIGKILL
    with RunLog(tmp_path, resume=True) as log:
        log.write("metrics", {"step": 2})
    assert [row["step"] for row in rows_of(tmp_path)] == [1, 2]


def test_disk_full_keeps_rows_whole_and_in_order(tmp_path, caplog):
    def child():
        log = RunLog(tmp_path, resume=False)
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
        for step in range(50):
            log.write("metrics", {"step": step})
            log.sync()
            assert (tmp_path / "metrics.jsonl").read_bytes().endswith(b"}\n")
        assert 0 < len(rows_of(tmp_path)) < 50
        assert caplog.text.count("training continues") == 1
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        log.write("metrics", {"step": 50})
        assert [row["step"] for row in rows_of(tmp_path)] == list(range(51))

    assert in_child(child) == 0


def test_rows_that_wait_for_a_full_disk_are_rewound_like_others(tmp_path):
    def child():
        log = RunLog(tmp_path, resume=False)
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
        offsets = []
        for step in range(60):
            log.write("metrics", {"step": step})
            offsets.append(log.offsets())
        assert len(rows_of(tmp_path)) < 50
        log.rewind(offsets[54])  # the last five wait
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        log.write("metrics", {"step": 60})
        assert [row["step"] for row in rows_of(tmp_path)] == [*range(55), 60]
        log.rewind(offsets[50])  # was taken while rows waited that have been written since
        assert [row["step"] for row in rows_of(tmp_path)] == [*range(51)]

    assert in_child(child) == 0


def test_short_writes_are_completed_and_failures_bounded(tmp_path, monkeypatch, caplog):
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:7]))
    with RunLog(tmp_path, resume=False) as log:
        log.write("metrics", {"step": 1})
        assert rows_of(tmp_path)[0]["step"] == 1

        def full(descriptor, data):
            raise OSError(28, "No space left on device")

        now = [0.0]
        monkeypatch.setattr(time, "monotonic", lambda: now[0])
        monkeypatch.setattr(os, "write", full)
        for step in range(2, runlog.RING_ROWS + 5):
            now[0] += 0.01
            log.write("metrics", {"step": step})
        assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 2  # 100 s
        monkeypatch.setattr(os, "write", real)
        log.sync()
    assert [row["step"] for row in rows_of(tmp_path)] == [1, *range(5, runlog.RING_ROWS + 5)]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_config_is_written_whole_or_not_at_all(tmp_path, monkeypatch, call):
    with RunLog(tmp_path, resume=True) as log:
        log.write_config("seed: 1\n")

    def child():
        log = RunLog(tmp_path, resume=True)
        monkeypatch.setattr(os, call, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        log.write_config("seed: 2\n")

    assert in_child(child) == -signal.SIGKILL
    assert (tmp_path / "config.yaml").read_text() == "seed: 1\n"


def test_config_that_cannot_be_written_is_a_storage_error(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    with RunLog(tmp_path, resume=False) as log:
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(StorageError, match="No space"):
            log.write_config("seed: 1\n")
    assert not list(tmp_path.glob("config*"))


def test_the_remedy_fits_the_reason(tmp_path):
    run = tmp_path / "run"
    (run / ".lock").mkdir(parents=True)
    with pytest.raises(StorageError, match=r"\.lock.*; a folder has the name of a file: move it away"):
        RunLog(run, resume=False)
    (run / ".lock").rmdir()
    with RunLog(run, resume=False) as log:
        shutil.rmtree(run)
        with pytest.raises(StorageError, match=r"\(No such file.*; the folder was deleted or moved, or the working"):
            log.write_config("seed: 1")

    def child():
        with RunLog(run, resume=False) as log:
            resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
            with pytest.raises(StorageError, match=r"\(File too large\); raise the limit .* \(ulimit -f\)"):
                log.write_config("seed: 1")

    assert in_child(child) == 0


def test_a_name_that_is_too_long_is_one_sentence(capsys):
    def main():
        return Path("x" * 300).exists()

    with pytest.raises(SystemExit) as ended:
        run_script(main)
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"error: {'x' * 300}: File name too long; choose a shorter name\n"
