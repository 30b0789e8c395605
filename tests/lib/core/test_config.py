import re
import resource
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from helpers.tiny import call

import reward_function  # noqa: F401  registers the rewards that configs name
from lib.core.config import KINDS, CollectConfig, ScoreConfig, SelfPlayConfig, SFTConfig, SweepConfig, dump, load
from lib.core.config.loader import HINTS, keys_of
from lib.core.config.trees import shortened
from lib.core.errors import ConfigError

ROOT = Path(__file__).parents[3]
SHIPPED = sorted((ROOT / "configs").glob("*.yaml"))
TASKS = [path for path in SHIPPED if not path.stem.startswith("sweep_")]
GOOD = """\
run_name: demo
model:
  name: some/model
dataset:
  name: rows.jsonl
prompts:
  user: "{question}"
  self_correction: Again.
train:
  alpha: 2
"""


def loaded(tmp_path, text=GOOD, *overrides, smoke=None, kind=ScoreConfig):
    path = tmp_path / "task.yaml"
    path.write_text(text)
    return load(kind, path, list(overrides), smoke)


def mistakes(tmp_path, text=GOOD, *overrides, kind=ScoreConfig):
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, text, *overrides, kind=kind)
    return str(caught.value).replace(f"{tmp_path}/", "").splitlines()


def kind_of(path):
    tree = yaml.safe_load(path.read_text())
    if "stages" in tree:
        return SweepConfig
    if "prompts" not in tree:
        return SFTConfig
    if (
        "self_correction" in tree["prompts"]
        or "stage2_steps" in tree.get("train", ())
        or "stage2_batch_size" in tree.get("train", ())
    ):
        return ScoreConfig
    return SelfPlayConfig if "train" in tree else CollectConfig


# -- the command line


def test_five_mistakes_are_five_lines_and_exit_code_2_without_torch(tmp_path):
    """Two seconds of CPU time, not of wall time: a busy machine must not decide."""
    (tmp_path / "torch.py").write_text("raise RuntimeError('torch was imported')")
    bad = tmp_path / "bad.yaml"
    bad.write_text(
        "run_name: demo\n"
        "model:\n"
        "  name: some/model\n"
        "  backend: unslot\n"  # 1
        "dataset:\n"
        "  nam: rows.jsonl\n"  # 2 and 3: unknown, and `name` is missing
        "prompts:\n"
        "  self_correction: Again.\n"
        "optimizer:\n"
        "  learning_rat: 1e-5\n"  # 4
        "train:\n"
        "  alpha: -1\n"  # 5
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "train.py", "--config", str(bad)],
        cwd=ROOT, capture_output=True, text=True, env={"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (done.returncode, done.stdout) == (2, "")
    assert sorted(done.stderr.splitlines()) == sorted(
        [
            f"{bad}:4: model.backend: should be 'auto', 'plain' or 'unsloth', got 'unslot'",
            f"{bad}:5: dataset.name: is missing: give a source, or several in a mixture",
            f"{bad}:6: dataset.nam: unknown key; did you mean 'name'?",
            f"{bad}:10: optimizer.learning_rat: unknown key; did you mean 'learning_rate'?",
            f"{bad}:12: train.alpha: should be greater than or equal to 0, got -1",
        ]
    )
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2


def test_stage_2_alone_needs_an_adapter():
    import train

    with pytest.raises(ConfigError, match="add --resume-adapter DIR"):
        call(train, "--config", "never_read.yaml", "--start-stage", "2")


@pytest.mark.parametrize("number", ["0", "-1", "x", "1.5"])
def test_smoke_wants_a_count(capsys, number):
    import train

    with pytest.raises(SystemExit) as caught:
        call(train, "--config", "x.yaml", f"--smoke={number}")
    assert caught.value.code == 2
    assert f"got '{number}', expected a whole number of at least 1" in capsys.readouterr().err


# -- mistakes

TYPOS = {
    "runname": "run_name",
    "output_dirs": "output_dir",
    "sed": "seed",
    "optimiser.name": "optimizer",
    "datasets.name": "dataset",
    "prompt.user": "prompts",
    "rewards.fn": "reward",
    "generate.temperature": "generation",
    "evals.seed": "eval",
    "traning.alpha": "train",
    "model.nme": "name",
    "model.load_4bit": "load_in_4bit",
    "model.max_seq_len": "max_seq_length",
    "model.gradient_checkpoint": "gradient_checkpointing",
    "model.chat_templat": "chat_template",
    "model.adapters.lora.rank_alpha": "alpha",
    "model.adapters.lora.target": "targets",
    "dataset.target": "target_field",
    "dataset.test_size": "test_split_size",
    "dataset.max_rows": "max_train_rows",
    "prompts.sytem": "system",
    "prompts.self_corection": "self_correction",
    "reward.func": "fn",
    "reward.answer_extracter": "answer_extractor",
    "generation.temprature": "temperature",
    "optimizer.lr_schedule": "schedule",
    "optimizer.learningrate": "learning_rate",
    "optimizer.warmup": "warmup_steps",
    "optimizer.grad_norm": "max_grad_norm",
    "train.aplha": "alpha",
    "train.beta_1": "beta1",
    "train.stage1_step": "stage1_steps",
    "train.revisions": "revisions_per_attempt",
    "train.kl_norm": "length_norm",
    "eval.every_step": "every_steps",
    "tracking.backends": "backend",
}


@pytest.mark.parametrize(("typo", "meant"), TYPOS.items())
def test_a_typo_is_explained(tmp_path, typo, meant):
    (line,) = mistakes(tmp_path, GOOD, f"{typo}=1")
    key = typo if typo.split(".")[0] in ScoreConfig.model_fields else typo.split(".")[0]
    assert line.startswith(f"override '{typo}=1': {key}: unknown key; ")
    assert f"did you mean '{meant}'?" in line


MOVED = {
    "train.learning_rate": "optimizer.learning_rate",
    "train.max_prompt_length_attempt2": "generation.max_prompt_length_attempt2",
    "train.seed": "seed or eval.seed",
    "train.generation_temperature": "generation.temperature",
    "dataset.input_field": "prompts.user",
    "model.lora_r": "model.adapters.lora.r",
    "lora.r": "model.adapters.lora",
    "wandb_project": "tracking.project",
    "eval.batch_size": "generation.batch_size",
}


@pytest.mark.parametrize(("key", "place"), MOVED.items())
def test_a_key_that_stands_elsewhere_is_pointed_at(tmp_path, key, place):
    (line,) = mistakes(tmp_path, GOOD, f"{key}=1")
    assert line.endswith(f": unknown key; it is {place}")


BUDGETS = "generation.max_new_tokens_attempt1 and generation.max_new_tokens_attempt2"
OF_OTHERS = {  # keys of other tools: ours in train.py, and in rl_train_gspo_selfplay.py
    "max_new_tokens": (BUDGETS, "generation.max_new_tokens"),
    "train.max_new_tokens": (BUDGETS, "generation.max_new_tokens"),
    "max_completion_length": (BUDGETS, "generation.max_new_tokens"),
    "num_generations": ("train.attempts_per_prompt", "train.group_size"),
    "train.num_generations": ("train.attempts_per_prompt", "train.group_size"),
    "thinking": ("model.chat_template_kwargs, such as {enable_thinking: false}", "generation.thinking"),
    "batch_size": ("train.stage1_batch_size and train.stage2_batch_size", "train.batch_size"),
    "report_to": ("tracking.backend",),
    "fast_inference": ("generation.engine: vllm",),
    "model.fast_inference": ("generation.engine: vllm",),
    "use_vllm": ("generation.engine: vllm",),
    "gradient_accumulation_steps": ("train.micro_batch_tokens, which fits a batch of any size into memory",),
    "warmup_ratio": ("optimizer.warmup_steps, a number of steps",),
    "optimizer.warmup_ratio": ("optimizer.warmup_steps, a number of steps",),
    "quantization": ("model.load_in_4bit: true",),
    "device_map": ("model.sharded: true, if one GPU does not hold the model; otherwise no key is needed",),
    "self_play": ("rl_train_gspo_selfplay.py, which plays against an opponent", "opponent.snapshots"),
    "reward_funcs": ("reward.fn",),
    "model_name_or_path": ("model.name",),
    "push_to_hub": ("hub.repo_id",),
    "num_train_epochs": ("train.stage1_epochs and train.stage2_epochs", "train.epochs"),
    "gpu_memory_utilization": ('generation.vllm.options: [--gpu-memory-utilization, "0.4"]',),
}


@pytest.mark.parametrize(("key", "places"), OF_OTHERS.items())
def test_a_key_of_another_tool_is_pointed_at_ours(tmp_path, key, places):
    for text, kind, place in ((GOOD, ScoreConfig, places[0]), (SINGLE, SelfPlayConfig, places[-1])):
        lines = mistakes(tmp_path, text, f"{key}=1", kind=kind)
        assert [line for line in lines if line.endswith(f": unknown key; it is {place}")], lines


def test_every_hint_names_keys_that_exist():
    known = {key for kind in KINDS for key in keys_of(kind, with_sections=True)} | {kind.__doc__ for kind in KINDS}
    for hints in HINTS.values():
        for hint in hints:
            assert set(re.findall(r"[\w]+\.[\w.]*\w", re.sub("[0-9]\\.[0-9]", "", hint))) <= known, hint


WRONG = {
    "model.adapters=3": "model.adapters: should be a valid dictionary or instance of Adapters, got 3",
    "model=": "model: should be a valid dictionary or instance of TrainedModel, got ''",
    "seed=null": "seed: should be a valid integer, got None",
    "model=abc": "TrainedModel, got 'abc': give model.name=abc, or in YAML model: {name: abc}",
    "reward=my_rewards.plain": "got 'my_rewards.plain': give reward.fn=my_rewards.plain, or in YAML reward: {fn: my_",
    "prompts.user={problem}": "prompts.user: should be a valid string, got {'problem': None}: put text with br",
    "run_name=a/b": "run_name: expected letters, digits, '_', '-' and '.', but neither of the last two at the begin",
    "run_name=..": "run_name: expected letters, digits, ",
    "train.alpha=.nan": "train.alpha: should be a finite number, got nan",
    "train.kl=k1": "train.kl: should be 'k3', 'k2', 'k1_in_reward' or 'exact', got 'k1'",
    "optimizer.betas=[0.9]": "optimizer.betas: ",
    "reward.fn=exact_mach": "reward.fn: unknown reward 'exact_mach'; did you mean 'exact_match'?",
    "reward.fn={}": "reward.fn: got {}, expected the name of a reward, or several with weights: {exact_match: 1.0, ",
    "reward.fn=[exact_match]": "reward.fn: got ['exact_match'], expected the name of a reward, or several with weights",
    "reward.fn={exact_match: 0, format_and_match: 0.0}": "reward.fn: every weight is 0, so that nothing would be paid",
    "reward.fn={format_and_match: 1}": "reward.format: 'format_and_match' pays for blocks that 'free' does not ask",
    "reward.match=no_module.f": "reward.match: match 'no_module.f': no module 'no_module' here",
    "train.micro_batch_tokens=2.5": "train.micro_batch_tokens: should be a valid integer",
    "train.micro_batch_size=8": "train.micro_batch_size: unknown key; did you mean 'micro_batch_tokens'?",
    "generation.batch_size=0": "generation.batch_size: should be greater than or equal to 1",
    "nonsense": "expected section.key=value",
    "=3": "expected section.key=value",
}


def test_all_that_is_wrong_with_weights_is_told_at_once(tmp_path):
    fn = "{exact_mach: 1, format_and_match: null, exact_match: -1, code: true, code_tests: .nan}"
    (line,) = mistakes(tmp_path, GOOD, f"reward.fn={fn}")
    for told in ("unknown reward 'exact_mach'; did you mean 'exact_match'?", "'format_and_match' has no weight: give",
                 "the weight of 'exact_match' is -1, expected a number of at least 0", "the weight of 'code' is True",
                 "the weight of 'code_tests' is nan"):  # fmt: skip
        assert told in line


@pytest.mark.parametrize(("override", "text"), WRONG.items())
def test_a_wrong_value_is_one_line_that_names_its_place(tmp_path, override, text):
    (line,) = mistakes(tmp_path, GOOD, override)
    assert line.startswith(f"override '{override}': ")
    assert text in line


UNREADABLE = {
    "": "task.yaml: got no `key: value` lines",
    "- 1\n": "task.yaml: got no `key: value` lines",
    "a: [1\n": "task.yaml:2: not YAML",
    "a: 1\n\tb: 2\n": "task.yaml:2: not YAML",
    'a: 1\nb: "\x00"\n': "task.yaml:2: not YAML: special characters are not allowed",
    "? [a]\n: 2\n": "task.yaml:1: not YAML: found unhashable key",
    "a: !!python/object:os.system x\n": "task.yaml:1: not YAML",
    "a: &x {b: *x}\n": "task.yaml: values are nested too deep, or hold themselves by *name",
    "seed: 1\nreward:\n  options: &t [q_proj, [k_proj, *t]]\n": "task.yaml: values are nested too deep",
    "--- &all\na: 1\nb: *all\n": "task.yaml: values are nested too deep",
    "a: " + "[" * 3000 + "]" * 3000: "task.yaml: values are nested too deep",
    "\n".join(" " * i + f"k{i}:" for i in range(3000)): "task.yaml: values are nested too deep",
    "a: 1\n<<: 3\n": "task.yaml:2: not YAML: expected a mapping or list of mappings for merging",
}


@pytest.mark.parametrize(("text", "expected"), UNREADABLE.items())
def test_text_that_is_no_config_is_one_sentence(tmp_path, text, expected):
    (line,) = mistakes(tmp_path, text)
    assert line.startswith(expected)


def test_a_section_may_have_the_keys_of_another_one(tmp_path):
    """By `<<`, as YAML 1.1 has it: its own keys go first, and a mistake in what it takes is told once, in its line."""
    text = GOOD + (
        "eval: &eval\n  seed: 7\n  max_examples: 9\n"
        "tracking: {project: a}\n"
        "optimizer: {<<: [{learning_rate: 3}, {learning_rate: 4, max_grad_norm: 5}], max_grad_norm: 6}\n"
    )
    config = loaded(tmp_path, text)
    assert (config.optimizer.learning_rate, config.optimizer.max_grad_norm, config.eval.seed) == (3, 6, 7)
    assert loaded(tmp_path, text.replace("&eval", "").replace("  seed: 7", "  <<: {seed: 8}")).eval.seed == 8
    (line,) = mistakes(tmp_path, text.replace("{learning_rate: 3}", "{learning_rate: 0}"))
    assert line == "task.yaml:15: optimizer.learning_rate: should be greater than 0, got 0"
    (line,) = mistakes(tmp_path, text.replace("{learning_rate: 3}", "{lr: 3}"))
    assert line.startswith("task.yaml:15: optimizer.lr: unknown key; ")


def test_an_override_that_nests_or_holds_itself_is_one_mistake(tmp_path):
    for value in ("[" * 3000 + "]" * 3000, "&x [*x]", "&x {a: *x}"):
        for key in ("model.adapters.lora.r", "model.adapters"):
            (line,) = mistakes(tmp_path, GOOD, f"{key}={value}")
            assert f": {key}: should be a valid " in line and line.endswith(shortened(value))


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: the config cannot be read \(No such file"):
        load(ScoreConfig, tmp_path / "nowhere.yaml")
    with pytest.raises(ConfigError, match="Is a directory"):
        load(ScoreConfig, tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"a: \xff")
    with pytest.raises(ConfigError, match="not UTF-8 text"):
        load(ScoreConfig, tmp_path / "latin.yaml")


def test_duplicate_keys_are_mistakes_with_both_lines(tmp_path):
    assert mistakes(tmp_path, GOOD + "seed: 1\ntrain:\n  beta1: 0\n  beta1: 1\nseed: 2\n") == [
        "task.yaml:12: train: given twice, first in line 9: remove one of them",
        "task.yaml:14: train.beta1: given twice, first in line 13: remove one of them",
        "task.yaml:15: seed: given twice, first in line 11: remove one of them",
    ]


def test_keys_that_are_no_text_are_unknown_keys(tmp_path):
    lines = mistakes(tmp_path, GOOD + "1: 2\n")
    assert len(lines) == 1
    assert lines[0].startswith("task.yaml:11: 1: unknown key")


def test_a_section_of_the_wrong_kind_is_one_mistake(tmp_path):
    assert mistakes(tmp_path, "run_name: x\nmodel: 3\ndataset:\nprompts: {self_correction: a}\n") == [
        "task.yaml:2: model: should be a valid dictionary or instance of TrainedModel, got 3",
        "task.yaml:3: dataset: should be a valid dictionary or instance of Dataset, got None",
    ]


def test_conflicts_are_told_together_with_other_mistakes(tmp_path):
    lines = mistakes(
        tmp_path, GOOD, "train.attempts_per_prompt=1", "generation.max_prompt_length_attempt2=100", "optimizer.nam=x",
        "model.max_seq_length=600",
    )  # fmt: skip
    starts = [
        "override 'optimizer.nam=x': optimizer.nam: unknown key; did you mean 'name'?",
        "override 'generation.max_prompt_length_attempt2=100': generation.max_prompt_length_attempt1: "
        "max_prompt_length_attempt1 + max_new_tokens_attempt1 = 896 exceeds model.max_seq_length = 600",
        "override 'generation.max_prompt_length_attempt2=100': generation.max_prompt_length_attempt2: "
        "max_prompt_length_attempt2 + max_new_tokens_attempt2 = 612 exceeds",
        "override 'generation.max_prompt_length_attempt2=100': generation.max_prompt_length_attempt1: "
        "max_prompt_length_attempt2 = 100 is below",
        "override 'train.attempts_per_prompt=1': train.baseline: leave_one_out needs attempts_per_prompt of at least 2",
    ]
    assert len(lines) == len(starts)
    assert all(line.startswith(start) for line, start in zip(lines, starts, strict=True)), lines


def test_a_conflict_is_not_told_of_a_field_that_is_wrong_itself(tmp_path):
    (line,) = mistakes(tmp_path, GOOD, "train.attempts_per_prompt=one", "train.revisions_per_attempt=1")
    assert "should be a valid integer" in line


@pytest.mark.parametrize(
    ("overrides", "text"),
    [
        (["train.stage1_steps=0", "train.stage2_steps=0"], "nothing would be trained"),
        (["train.stage1_steps=0", "train.stage2_epochs=0"], "nothing would be trained"),
        (["train.attempts_per_prompt=1", "train.revisions_per_attempt=1"], "leave_one_out needs at least two"),
    ],
)
def test_values_that_do_not_fit_together(tmp_path, overrides, text):
    (line,) = mistakes(tmp_path, GOOD, *overrides)
    assert text in line


def test_a_conflict_inside_a_section_is_told_in_the_line_of_its_key(tmp_path):
    text = SINGLE + "servers:\n  far:\n    model: m\n    base_url: here\n    api: responses\nteacher:\n  server: away\n"
    with pytest.raises(ConfigError) as caught:
        overrides = ("opponent.server=far", "opponent.snapshots={}", "servers.far.thinking.enabled=true")
        loaded(tmp_path, text, *overrides, kind=SelfPlayConfig)
    lines = sorted(str(caught.value).replace(f"{tmp_path}/", "").splitlines())
    starts = [
        "override 'opponent.server=...': opponent.server: a server or snapshots of the policy: give",
        "override 'servers.far.thinking.enabled=...': servers.far.thinking.enabled: the responses API has",
        "task.yaml:14: servers.far.base_url: no address: 'here'; write http://HOST:PORT/v1",
        "task.yaml:17: teacher.server: no server has this name; known: far; add it to servers: {NAME: {base_url: ...,",
    ]
    assert len(lines) == len(starts)
    assert all(line.startswith(start) for line, start in zip(lines, starts, strict=True)), lines


KEYS = ("sk-proj-hush", "hush me", "7hush", "hf_" + 17 * "Hu", "gsk_" + 13 * "hush", 8 * "abadcafe")


@pytest.mark.parametrize("key", KEYS)
def test_a_key_in_place_of_the_name_of_its_variable_is_not_printed(tmp_path, key):
    text = SINGLE + "teacher: {server: far}\nservers:\n  far: {model: m}\n"
    for more, *overrides in (
        [f"  near: {{model: m, api_key_env: '{key}'}}\n"],
        [f"  near: '{key}'\n"],
        [f"  near: {{model: m, extra_body: '{key}'}}\n"],
        [f"opponent: {{server: '{key}'}}\n"],
        [f"opponent: {{endpoint: {{model: m, api_key_env: '{key}'}}}}\n"],
        ["", f"servers.far.api_key_env={key}"],
        ["", f"servers.far.api_key={key}"],
        ["", f"servers.far.api_key_env:{key}"],
        ["", f"servers.far={{model: m, api_key_env: '{key}'}}"],
        ["", f"servers.far={key}"],
        ["", f"servers={key}"],
        ["", f"teacher.server={key}"],
        ["", f"teacher.server=http://x/v1?api-key={key}"],
        ["", f"servers.far.base_url=http://x/v1?api-key={key}"],
        ["", f"teacher.endpoint.api_key_env={key}"],
    ):
        with pytest.raises(ConfigError) as caught:
            loaded(tmp_path, text + more, *overrides, kind=SelfPlayConfig)
        assert key not in str(caught.value) and re.search("server|endpoint", str(caught.value))


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "my_key", "_K1", "THE_KEY_OF_OUR_TEACHERS_SERVER_2"])
def test_names_of_variables_are_taken(tmp_path, name):
    text = SINGLE + f"servers: {{far: {{model: m, api_key_env: {name}}}}}\n"
    assert loaded(tmp_path, text, kind=SelfPlayConfig).servers["far"].api_key_env == name


OLD = {  # keys of the systems that this one succeeds
    SelfPlayConfig: {
        "opponent.endpoint": "opponent.server: NAME, with what stood here under servers.NAME",
        "teacher.endpoint": "teacher.server: NAME, with what stood here under servers.NAME",
    },
    CollectConfig: {"endpoint": "server: NAME, with what stood here under servers.NAME"},
}


@pytest.mark.parametrize("kind", OLD)
def test_all_keys_that_became_a_servers_are_told_at_once(tmp_path, kind):
    text = {SelfPlayConfig: SINGLE}.get(kind, "run_name: r\ndataset: {name: d}\n")
    lines = mistakes(tmp_path, text, *(f"{key}.model=m" for key in OLD[kind]), kind=kind)
    for key, place in OLD[kind].items():
        assert [line for line in lines if line.endswith(f" {key}: unknown key; it is {place}")], lines


@pytest.mark.parametrize("name", ["a.b", "", "9", "a b"])
def test_a_server_has_a_name_that_overrides_can_name(tmp_path, name):
    (line,) = mistakes(tmp_path, SINGLE + f"servers: {{'{name}': {{model: m}}}}\n", kind=SelfPlayConfig)
    assert f"servers.{name}: expected a name of letters, digits, _ and -, under which servers has" in line


@pytest.mark.parametrize("trick", ["top_p", "top_k", "min_p", "repetition_penalty"])
def test_sampler_tricks_are_refused_with_the_reason(tmp_path, trick):
    lines = mistakes(tmp_path, GOOD, f"generation.{trick}=0.9", "generation.temperature=0")
    assert len(lines) == 2
    assert f"{trick} would make the sampling distribution differ from the one whose log-probabilities are" in lines[1]
    assert lines[0].endswith("generation.temperature: should be greater than 0, got 0")


# -- what YAML means


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("optimizer.learning_rate=1e-5", "optimizer.learning_rate", 1e-5),
        ("optimizer.learning_rate=1.5E-3", "optimizer.learning_rate", 1.5e-3),
        ("prompts.self_correction=no", "prompts.self_correction", "no"),
        ("prompts.self_correction=12:30", "prompts.self_correction", "12:30"),
        ("seed=010", "seed", 10),
        ("seed=-3", "seed", -3),
        ("model.revision=1e10", "model.revision", None),  # a number, and a revision is text: quote it
        ("model.revision='1e10'", "model.revision", "1e10"),
        ("model.revision=~", "model.revision", None),
        ("model.load_in_4bit=true", "model.load_in_4bit", True),
        ("model.adapters.lora.targets=[q_proj, up_proj]", "model.adapters.lora.targets", ["q_proj", "up_proj"]),
        ("train.sampler_correction.cap=2.5", "train.sampler_correction.cap", 2.5),
        ("model.chat_template_kwargs.enable_thinking=false", "model.chat_template_kwargs", {"enable_thinking": False}),
        ("prompts.system=a=b", "prompts.system", "a=b"),
        ("prompts.system=", "prompts.system", ""),
    ],
)
def test_a_scalar_means_what_people_expect(tmp_path, text, key, value):
    if text == "model.revision=1e10":
        assert "should be a valid string, got 10000000000.0" in mistakes(tmp_path, GOOD, text)[0]
        return
    result = loaded(tmp_path, GOOD, text)
    for part in key.split("."):
        result = getattr(result, part)
    assert result == value
    assert type(result) is type(value)


def test_overrides_win_and_the_last_of_them_most(tmp_path):
    config = loaded(tmp_path, GOOD, "train.alpha=3", "train.alpha=4", "eval.max_examples=7")
    assert (config.train.alpha, config.eval.max_examples, config.train.beta1) == (4, 7, 0.01)


# -- which script a config is for

SINGLE = GOOD.replace("self_correction: Again.", "hinted: '{hint}'").replace("alpha", "group_size")
BOTH = (SelfPlayConfig, ScoreConfig)


def test_of_two_kinds_it_is_the_one_that_knows_the_keys(tmp_path):
    assert isinstance(loaded(tmp_path, GOOD, kind=BOTH), ScoreConfig)
    assert isinstance(loaded(tmp_path, SINGLE, kind=BOTH), SelfPlayConfig)
    with pytest.raises(ConfigError, match=r"task\.yaml:10: train\.alhpa: unknown key; did you mean 'alpha'\?$"):
        loaded(tmp_path, GOOD.replace("alpha", "alhpa"), kind=BOTH)


def test_a_config_of_another_script_is_told_only_where_that_knows_all_keys(tmp_path):
    (line,) = mistakes(tmp_path, SINGLE)
    assert line.startswith("task.yaml: this is a config of rl_train_gspo_selfplay.py, expected one of train.py: ")
    assert len(mistakes(tmp_path, SINGLE + "  stepz: 3\n")) == 4  # self_correction is missing, three keys are unknown
    assert mistakes(tmp_path, GOOD.replace("  self_correction: Again.\n", "").replace("alpha: 2", "seed: 2")) == [
        "task.yaml:6: prompts.self_correction: is missing and has no default: add it",
        "task.yaml:9: train.seed: unknown key; it is seed or eval.seed",
    ]


# -- what is shipped


def test_the_recipes_for_other_models_are_valid():
    text = (ROOT / "docs/gpu.md").read_text(encoding="utf-8").replace("\\\n", "")
    recipes = [shlex.split(line)[4:] for line in text.splitlines() if "run_name=score-" in line]
    configs = [load(ScoreConfig, ROOT / "configs/gsm8k.yaml", overrides) for overrides in recipes]
    assert [config.model.name for config in configs] == [
        "Qwen/Qwen2.5-0.5B-Instruct", "meta-llama/Llama-3.2-1B-Instruct",
    ]  # fmt: skip
    assert [config.model.chat_template_kwargs for config in configs] == [{}, {"date_string": "26 Jul 2024"}]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_config_survives_a_round_trip(tmp_path, path):
    config = load(kind_of(path), path)
    copy = tmp_path / "config.yaml"
    copy.write_text(dump(config))
    assert load(kind_of(path), copy) == config


@pytest.mark.parametrize("path", TASKS, ids=lambda path: path.stem)
def test_smoke_is_a_function_whose_result_is_a_config(tmp_path, path):
    config = load(kind_of(path), path)
    before = dump(config)
    small = config.smoke(8)
    assert small == config.smoke(8) == load(kind_of(path), path, smoke=8)
    assert dump(config) == before
    copy = tmp_path / "config.yaml"
    copy.write_text(dump(small))
    assert load(kind_of(path), copy) == small  # conflicts and limits are checked here
    assert small.run_dir != config.run_dir
    if isinstance(small, CollectConfig):
        assert small.dataset.max_rows <= 8 and small.generation.samples_per_prompt <= 2
        assert small.generation.most_tokens <= 256 and small.tools.max_turns <= 2
        return
    assert small.dataset.max_train_rows <= 8
    assert small.dataset.test_split_size <= 8
    if isinstance(small, SFTConfig):
        assert small.train.steps * small.train.batch_size * small.train.gradient_accumulation <= 16
        return
    assert (small.train.checkpoint_every, small.eval.every_steps) == (1, 1)
    assert small.eval.max_examples <= 8 and small.eval.samples_per_prompt <= 2
    if isinstance(small, ScoreConfig):
        stages = tuple(map(config.train.has_steps, (1, 2)))
        steps = {(True, True): (2, 1), (True, False): (2, 0), (False, True): (0, 2)}[stages]
        assert (small.train.stage1_steps, small.train.stage2_steps, small.train.stage1_batch_size) == (*steps, 2)
        assert max(small.generation.max_new_tokens_attempt1, small.generation.max_new_tokens_attempt2) <= 256
    else:
        assert (small.train.steps, small.train.batch_size) == (2, 2) and small.generation.most_tokens <= 2 * 256


def test_smoke_of_one_stage_has_an_evaluation_in_its_middle(tmp_path):
    steps = [loaded(tmp_path, GOOD, f"train.stage{without}_steps=0", smoke=8).train for without in (1, 2)]
    assert [(plan.stage1_steps, plan.stage2_steps) for plan in steps] == [(0, 2), (2, 0)]


def test_smoke_leaves_out_what_a_config_does_not_have(tmp_path):
    both = ("opponent.snapshots.every_steps=9", "servers.x.model=m", "teacher.server=x", "teacher.hint.neither=0.5")
    assert loaded(tmp_path, SINGLE, smoke=8, kind=SelfPlayConfig).opponent is None
    small = loaded(tmp_path, SINGLE, *both, smoke=8, kind=SelfPlayConfig)
    assert (small.opponent.snapshots.every_steps, small.teacher.hint.neither) == (1, 1)


@pytest.mark.parametrize(("examples", "batch"), [(1, 1), (3, 2), (8, 2), (16, 4)])
def test_smoke_of_four_examples_a_process_lets_all_take_part(tmp_path, examples, batch):
    assert loaded(tmp_path, GOOD, smoke=examples).train.stage2_batch_size == batch


def test_smoke_tells_every_value_that_it_changes_and_no_other(tmp_path, capsys):
    config = loaded(tmp_path, GOOD, "train.stage2_steps=0", "generation.max_new_tokens_attempt1=5", smoke=3)
    (told,) = capsys.readouterr().out.splitlines()
    changed = {
        "run_name 'demo' -> 'demo-smoke'", "dataset.max_train_rows None -> 3", "dataset.test_split_size 200 -> 3",
        "generation.max_new_tokens_attempt2 512 -> 256", "train.stage1_steps None -> 2",
        "train.checkpoint_every 0 -> 1", "train.stage1_batch_size 16 -> 2",
        "train.stage2_batch_size 16 -> 2", "train.attempts_per_prompt 4 -> 2",
        "eval.max_examples 200 -> 2", "eval.selection_examples 200 -> 0", "eval.every_steps 0 -> 1",
        "train.overlong_buffer 0 -> 4",
    }  # fmt: skip
    assert told.startswith("--smoke 3 changes ")
    assert set(told.removeprefix("--smoke 3 changes ").split(", ")) == changed
    assert config.train.stage2_steps == 0
    loaded(tmp_path)
    assert capsys.readouterr().out == ""


def test_smoke_does_not_raise_what_is_small_already(tmp_path):
    config = loaded(tmp_path, GOOD, "generation.max_new_tokens_attempt1=5", "eval.max_examples=3", smoke=1)
    assert (config.generation.max_new_tokens_attempt1, config.generation.max_new_tokens_attempt2) == (5, 256)
    assert (config.eval.max_examples, config.train.stage1_batch_size) == (1, 1)


def test_the_reference_has_every_key_as_the_classes_have_it():
    """`python docs/config_reference.py` writes it."""
    builder = runpy.run_path(str(ROOT / "docs/config_reference.py"))
    page = (ROOT / "docs/config.md").read_text(encoding="utf-8")
    assert page == builder["reference"]()
    names = {key.rpartition(".")[2] for kind in KINDS for key in keys_of(kind)}
    assert len(names) > 150 and all(f"\n| `{name}` | " in page for name in names) and "|  |\n" not in page
    assert "| `checkpoint_every` | integer ≥ 0 | `0` | steps; 0: before the first step, at a new best, and at" in page
