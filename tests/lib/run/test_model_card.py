import copy
import runpy
from pathlib import Path

import pytest
import yaml
from huggingface_hub import ModelCard

import reward_function  # noqa: F401
from lib.core.config import Adapters, ScoreConfig, SelfPlayConfig, dump, load
from lib.model.adapters import shelf
from lib.run.model_card import licence_of, trained_in, write_card
from lib.run.runlog import encode

CARD = "---\nlicense: other\nlicense_name: qwen\nlanguage: en\n---\n# Qwen\n"


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """The config of a run on a model of the Hub."""
    monkeypatch.chdir(tmp_path)
    text = "{run_name: r, model: {name: Qwen/Qwen3-0.6B, revision: abc}, dataset: {name: openai/gsm8k}, "
    (tmp_path / "r.yaml").write_text(text + "prompts: {user: 'Say ```{question}```', self_correction: again}}")
    return yaml.safe_load(dump(load(ScoreConfig, tmp_path / "r.yaml", ["reward.fn={exact_match: 1, code: 0.5}"])))


def card(tree, model, rows, place, folder):
    (folder / "evaluations.jsonl").write_bytes(b"".join(map(encode, rows)))
    write_card(folder, folder, tree, trained_in(model), place=place)
    return ModelCard.load(folder / "README.md")


def evaluated(when, stage, step, acc, **more):
    rates = dict.fromkeys(("acc_attempt1", "acc_attempt2", "delta", "i_to_c", "c_to_i"), acc)
    ends = {f"{key}_ci95": [acc - 0.1, acc + 0.1] for key in rates}
    return {
        "when": when,
        "stage": stage,
        "step": step,
        "temperature": 1.0,
        "n": 9,
        "prompts": 9,
        **rates,
        **ends,
        **more,
    }


def test_a_card_has_what_the_hub_reads_and_only_that(tree, make_policy, tmp_path):
    found = card(tree, make_policy().model, [], tmp_path / "stage1/step_2", tmp_path)
    data = found.data.to_dict()
    assert data.pop("tags") == ["rematch", "score", "lora"]
    assert data == {"base_model": "Qwen/Qwen3-0.6B", "library_name": "peft", "pipeline_tag": "text-generation",
                    "datasets": ["openai/gsm8k"]}  # fmt: skip
    assert "Not evaluated on held-out rows." in found.text and "**Reward:** `exact_match` + 0.5 `code`" in found.text
    assert 'from_pretrained("Qwen/Qwen3-0.6B", dtype="auto", revision="abc")' in found.text
    (tmp_path / "Qwen/Qwen3-0.6B").mkdir(parents=True)
    (tmp_path / "Qwen/Qwen3-0.6B/README.md").write_text(CARD)
    data = card(tree, make_policy().model, [], tmp_path / "stage1/step_2", tmp_path).data.to_dict()
    assert (data.get("base_model"), data["license"], data["license_name"]) == (None, "other", "qwen")  # it is local now


@pytest.mark.parametrize(
    "text", ["", "# no metadata", "---\n: [\n---\n", "---\n- a list\n---\n", "---\nlicense:\n---\n"]
)
def test_a_licence_that_is_not_told_is_unknown(tmp_path, text):
    (tmp_path / "README.md").write_text(text)
    assert licence_of(str(tmp_path)) == licence_of(None) == licence_of("nobody/nothing") == licence_of("a/b/c") == {}


def test_a_card_names_a_checkpoint_as_it_will_be_called(tree, make_policy, tmp_path):
    part = tmp_path / "stage1/step_2.tmp"
    part.mkdir(parents=True)
    write_card(part, tmp_path, tree, trained_in(make_policy().model))
    text = (part / "README.md").read_text()
    assert f'from_pretrained(base, "{tmp_path}/stage1/step_2")' in text and "after step 2 of stage 1" in text


def test_a_licence_cannot_write_into_the_card(tree, make_policy, tmp_path):
    (tmp_path / "Qwen/Qwen3-0.6B").mkdir(parents=True)
    hostile = "mit`\\n---\\n# Owned [click](http://x)\\n<script>`"
    text = f'---\nlicense: "{hostile}"\nlicense_name: "{hostile}"\nlicense_link: [a]\n---\n'
    (tmp_path / "Qwen/Qwen3-0.6B/README.md").write_text(text)
    found = card(tree, make_policy().model, [], tmp_path / "stage1/step_2", tmp_path)
    shown = "mit' --- # Owned [click](http://x) <script>'"
    assert found.data.license == found.data.license_name == shown and "license_link" not in found.data.to_dict()
    assert [line for line in found.text.splitlines() if "Owned" in line] == [f"- **Licence of the base:** `{shown}`"]


def test_a_card_shows_of_servers_the_names_of_their_models_alone(make_policy, tmp_path):
    path = Path(__file__).parents[3] / "configs/math_replay.yaml"
    tree = yaml.safe_load(dump(load(SelfPlayConfig, path, ["train.after_checkpoint=curl hush-1"])))
    server = {"base_url": "https://x/v1?api-key=hush-2", "api_key_env": "hush-3",
              "extra_body": {"key": "hush-5", "name": "hush-6", "pin": 4711}, "deadline_s": 4711}  # fmt: skip
    for name in ("opponent", "teacher", "distill"):
        tree[name] = {"weight": 0.25, "server": f"{name}s", "endpoint": server}
        tree["servers"][f"{name}s"] = server | {"model": f"model-of-{name}"}
    tree["generation"]["vllm"] = {"url": "hush-7", "options": ["--api-key", "hush-8"]}
    tree["reward"]["options"] = {"judge": "hush-9", "depth": 3}
    tree["train"]["key_of_another_version"] = "hush-10"
    tree |= {"tracking": {"notes": "hush-11"}, "hub": {"repo_id": "hush/12"}}
    card(tree, make_policy().model, [], tmp_path / "stage1/step_2", tmp_path)
    text = (tmp_path / "README.md").read_text()
    assert "hush" not in text and "4711" not in text
    shown = yaml.safe_load(text.split("````yaml\n")[-1].split("````")[0])
    assert shown["opponent"] == {"weight": 0.25, "server": "opponents"} and "**Teacher:** `model-of-teacher`" in text
    assert shown["servers"]["opponents"] == {"model": "model-of-opponent"}
    for section in ("optimizer", "prompts"):
        assert shown[section] == {key: value for key, value in tree[section].items() if value is not None}
    for key in ("mixture", "test_split_size"):
        assert shown["dataset"].get(key) is not None
    assert shown["reward"]["by_task"]["crossword"]["fn"] == "crossword" and shown["reward"]["options"] == {"depth": 3}
    assert shown["model"]["adapters"] == tree["model"]["adapters"] and shown["seed"] == tree["seed"]


def test_the_table_ends_at_the_step_of_the_weights(tree, make_policy, tmp_path):
    rows = [
        evaluated("pretrain", 1, 0, 0.11), evaluated("pretrain", 1, 0, 0.12, temperature=0.0),
        evaluated("step", 1, 4, 0.13), evaluated("step", 1, 8, 0.14), evaluated("step", 1, 9, 0.99, went_back=True),
        evaluated("after_stage1", 1, 12, 0.15), evaluated("step", 2, 4, 0.16), evaluated("after_stage2", 2, 8, 0.17),
    ]  # fmt: skip
    for place, expected in {
        "stage1/step_4": [0.11, 0.12, 0.13], "stage1/step_9": [0.11, 0.12, 0.14], "stage1": [0.11, 0.12, 0.15],
        "stage2/step_4": [0.11, 0.12, 0.15, 0.16], "stage2": [0.11, 0.12, 0.15, 0.17],
    }.items():  # fmt: skip
        text = card(tree, make_policy().model, rows, tmp_path / place, tmp_path).text
        lines = [line for line in text.split("## Evaluation")[1].splitlines() if line.startswith("| ")][2:]
        assert [float(line.split(" | ")[1].split()[0]) for line in lines] == expected, place
        assert ("saved after the last of these" in text) == (place == "stage1/step_9")
    assert lines[0].startswith("| pretrain, temperature 1 | 0.110 [0.010, 0.210] |")
    assert (
        lines[1].startswith("| pretrain, greedy | 0.120 [0.020, 0.220] |")
        and " | +0.120 [+0.020, +0.220] | " in lines[1]
    )


def test_numbers_are_counted_by_family(tree, make_policy, tiny, tmp_path):
    adapters = {"ia3": {}, "soft_prompt": {"tokens": 3}}
    tree["model"]["adapters"] |= yaml.safe_load(Adapters(**adapters).model_dump_json(include=set(adapters)))
    model = make_policy(adapters=adapters).model
    found = card(tree, model, [], tmp_path / "final", tmp_path)
    lora = sum(value.numel() for name, value in model.named_parameters() if "lora_" in name)
    assert f"| lora | {lora:,} | " in found.text
    assert "| ia3 | 32 | bounds 0.9, 1.1; targets down |" in found.text  # 2 layers of width 16
    assert "| soft_prompt | 48 | tokens 3; freeze_steps 0 |" in found.text
    assert "It cannot be merged into its base (soft_prompt: " in found.text
    alone = copy.deepcopy(tiny[0])
    shelf.attach(alone, Adapters(lora=None, ia3={}), seed=0)
    assert trained_in(alone).families == {"ia3": 32} and trained_in(alone).count == 32
    assert str(trained_in(alone)) == "32 parameters are trained, of these 32 ia3"


def test_a_card_of_several_tasks_names_their_data_and_rewards(make_policy, tmp_path):
    config = load(SelfPlayConfig, Path(__file__).parents[3] / "configs/math_replay.yaml", [])
    found = card(yaml.safe_load(dump(config)), make_policy().model, [], tmp_path / "stage1", tmp_path)
    assert found.data.datasets == ["openai/gsm8k"]
    lines = (
        "**Data:** `openai/gsm8k`, configuration `main`, weight 3", "**Data:** `./data/crossword`, weight 1",
        "**Reward for crossword:** `crossword`", "**Format of an answer for school:** think_answer, compared by exact",
    )  # fmt: skip
    for line in lines:
        assert f"- {line}\n" in found.text


def test_a_run_without_an_opponent_is_no_self_play(make_policy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "{run_name: r, model: {name: Qwen/Qwen3-0.6B}, dataset: {name: openai/gsm8k}}"
    (tmp_path / "r.yaml").write_text(text)
    for overrides, tag in (([], "gspo"), (["opponent.snapshots={}"], "self-play")):
        tree = yaml.safe_load(dump(load(SelfPlayConfig, tmp_path / "r.yaml", overrides)))
        found = card(tree, make_policy().model, [], tmp_path / "stage1", tmp_path)
        assert found.data.tags == ["rematch", tag, "lora"]
        assert ("self-play" in found.text) == (tag == "self-play")


def test_the_converted_model_has_its_licence(tmp_path):
    readme = runpy.run_path(str(Path(__file__).parents[3] / "data/get_smollm2.py"))["README"]
    (tmp_path / "README.md").write_text(readme)
    assert licence_of(str(tmp_path)) == {"license": "apache-2.0"}
