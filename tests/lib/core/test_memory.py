"""Memory that runs out is one error with one exit code, whoever noticed it; what a container leaves is known."""

import pytest
import torch

from engine.decoder import container_room
from lib.core.config import Model
from lib.core.errors import OutOfMemory, is_out_of_memory, run_script
from lib.model import loading


def too_much():
    torch.empty(2**50, dtype=torch.uint8)  # what the allocator of a CPU says is its own


def too_long():
    return [0] * 2**60


@pytest.mark.parametrize("fail", [too_much, too_long])
def test_every_kind_is_known(fail):
    with pytest.raises((MemoryError, RuntimeError)) as caught:
        fail()
    assert is_out_of_memory(caught.value)


@pytest.mark.parametrize("text", ["CUDA error: out of memory", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling"])
def test_a_gpu_that_says_it_in_other_words_is_understood(text):
    assert is_out_of_memory(RuntimeError(text))


def test_other_errors_are_not_taken_for_it():
    with pytest.raises(RuntimeError, match="shape") as caught:
        torch.zeros(2).view(3)
    assert not is_out_of_memory(caught.value)


@pytest.mark.parametrize("fail", [too_much, too_long])
def test_a_script_ends_with_a_sentence_and_its_exit_code(fail, capsys):
    with pytest.raises(SystemExit) as caught:
        run_script(fail)
    assert caught.value.code == 4
    said = capsys.readouterr().err
    assert said.startswith("error: out of memory (") and said.count("\n") == 1


def test_a_model_that_does_not_fit_is_not_taken_for_one_that_is_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(loading, "_load_plain", lambda config: too_much())
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).touch()
    with pytest.raises(OutOfMemory, match=r"does not fit into memory .*; use a smaller model"):
        loading.load_base(Model(name=str(tmp_path), backend="plain"), "plain")


@pytest.mark.parametrize(
    ("files", "room"),
    [
        ({"memory.max": "1000\n", "memory.current": "400\n"}, 600),
        ({"memory.max": "max\n", "memory.current": "400\n"}, float("inf")),
        ({"memory.max": "300\n", "memory.current": "400\n"}, 0),
        ({"memory/memory.limit_in_bytes": "1000\n", "memory/memory.usage_in_bytes": "100\n"}, 900),
        ({}, float("inf")),
    ],
)
def test_the_limits_of_a_container_in_both_layouts(tmp_path, files, room):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert container_room(tmp_path) == room
