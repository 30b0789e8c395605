"""The notebook: its code cells run as they stand, one after the other, with little to train."""

import json
from pathlib import Path

from conftest import long
from test_commands import LITTLE

from lib.core.config import ScoreConfig, load

ROOT = Path(__file__).parents[2]
CELLS = json.loads((ROOT / "notebooks/rematch.ipynb").read_text(encoding="utf-8"))["cells"]
CODE = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]
LESS = f'SETTINGS = "{LITTLE} dataset.test_split_size=32 train.stage1_batch_size=4 train.stage2_batch_size=4"'


def test_it_keeps_no_output_and_every_cell_is_short():
    assert not any(cell["outputs"] or cell["execution_count"] for cell in CELLS if cell["cell_type"] == "code")
    assert max(len(cell["source"]) for cell in CELLS) <= 40


def test_its_config_for_a_gpu_is_sound(tmp_path):
    [cell] = [cell for cell in CODE if "on_a_gpu = " in cell]
    text = cell.partition('on_a_gpu = """')[2].partition('"""')[0].replace("\\\\n", "\\n")
    (tmp_path / "my_task.yaml").write_text(text)
    assert load(ScoreConfig, tmp_path / "my_task.yaml", [], None).model.name == "Qwen/Qwen3-0.6B"


@long
def test_its_cells_run_on_a_cpu(tmp_path, monkeypatch, capsys):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "data").mkdir()
    for path in (*ROOT.iterdir(), *(ROOT / "data").iterdir()):
        if path.name not in ("data", "generated", "notebooks", "outputs", ".git"):
            (tmp_path / path.relative_to(ROOT)).symlink_to(path)
    monkeypatch.chdir(tmp_path / "notebooks")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr("shutil.which", lambda name: None)
    names = {}
    for cell in CODE:
        exec(cell.replace('SETTINGS = ""', LESS), names)
    said = capsys.readouterr().out
    assert said.count("after stage II") >= 2 and '"attempt2"' in said and "Correct any error." in said
    for run in ("notebook", "my-task"):
        assert "<h1>" in (tmp_path / "outputs" / run / "report.html").read_text(encoding="utf-8")
