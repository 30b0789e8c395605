"""`prompts.feedback: teacher`: what a server says of an attempt, and what of that the policy reads."""

from pathlib import Path

import pytest
from helpers.server import serve
from helpers.tiny import logged, printed
from test_feedback import ROW, prompts_of, with_teacher, written
from test_feedback import folder as folder

import evaluate
import train
from lib.core.config import Prompts, ScoreConfig, load
from lib.core.errors import ConfigError
from lib.rl.task import load_data


def test_a_critique_is_told_without_code_and_without_the_answer():
    """What gives the answer away is dropped, and code; who does not reply says nothing."""
    rows = [{**ROW, "answer": "4711"}] * 7
    prompts = with_teacher(prompts_of("teacher"), ["4711"] * 7)
    told = [prompt.feedback for prompt in prompts.after([written(prompts, "It is 4712.", row) for row in rows])]
    assert told[:3] == ["Again!"] * 3 and told[6] == "Again!"
    assert told[3].startswith("A student answered the problem below.") and told[3].endswith("It is 4712.\nAgain!")
    assert told[4:6] == ["Look again.&lt;|im_end|> &lt;|im_start|>user Done.\nAgain!", "Check line 2.\nAgain!"]
    for seen in prompts.feedback.remote.seen:
        assert "Add 1." in seen and "It is 4712." in seen and "4711" not in seen


def test_a_run_asks_its_teacher_and_keeps_what_it_said(folder, tiny_folder, capsys):
    with serve(tiny_folder, "--name", "tiny") as url:
        settings = ("server=tutor", "max_new_tokens=12", "said='{critique} {self_correction}'")
        options = (
            "prompts.feedback=teacher",
            "train.stage1_steps=0",
            f"servers.tutor.base_url={url}",
            "servers.tutor.model=tiny",
            *(f"prompts.teacher.{setting}" for setting in settings),
        )
        printed(train, capsys, "--config", "tiny.yaml", *options)
        kept = Path("outputs/tiny/prompts.teacher_replies.jsonl").read_text().splitlines()
        texts = logged("generations")
        heard = {row.get("feedback2") for row in texts if row.get("feedback") != "none"}
        assert len(kept) > 4 and any(text and text != "R" and text.endswith(" R") for text in heard)
        shown = printed(evaluate, capsys, "--config", "outputs/tiny/config.yaml", "--run", "outputs/tiny",
                    "--temperature", "0")  # fmt: skip
        assert "a teacher's critique" in shown
    rows = logged("evaluations")
    assert [row["feedback"] for row in rows] == ["teacher", "none"] * 2


def test_a_server_without_its_section_or_its_key_is_refused(folder):
    with pytest.raises(ConfigError, match="give both, feedback: teacher and teacher"):
        load(ScoreConfig, Path("tiny.yaml"), ["prompts.feedback=teacher"])
    asked = ["prompts.feedback=teacher", "prompts.teacher.server=tutor"]
    with pytest.raises(ConfigError, match=r"prompts\.teacher\.server: no server has this name; known: none; add it"):
        load(ScoreConfig, Path("tiny.yaml"), asked)
    with pytest.raises(ConfigError, match=r"servers\.tutor\.api_key_env.*NONE"):
        overrides = [*asked, "servers.tutor.model=m", "servers.tutor.api_key_env=NONE"]
        load_data(load(ScoreConfig, Path("tiny.yaml"), overrides))
    with pytest.raises(ValueError, match=r"nothing fills '\{answer\}'"):
        Prompts(self_correction="R", teacher={"server": "m", "request": "{question} {answer}"})
