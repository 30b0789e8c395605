"""How large the project may be: a bound on what a reader has to know, which only goes down."""

from pathlib import Path

import pytest

from lib.core.config import KINDS, keys_of

ROOT = Path(__file__).parents[2]
CONFIG_KEYS = 266
LINES = {"lib": 24_075, "judge": 5_968, "engine": 1_635, "pages": 2_574, "benchmarks": 2_300}  # of Python


@pytest.mark.parametrize("wing", LINES)
def test_no_wing_grows(wing):
    """Programs that the judge is tested with do not count."""
    files = [path for path in (ROOT / wing).rglob("*.py") if ROOT / "judge/data" not in path.parents]
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)
    assert lines <= LINES[wing], f"{wing} has {lines} lines: say what leaves for what came"


def test_the_configs_have_no_more_keys():
    """Each dotted key counts once over all scripts, and a key of sections that the user names once for all of them."""
    keys = {key for kind in KINDS for key in keys_of(kind)}
    assert {"seed", "servers.NAME.base_url", "reward.by_task.NAME.fn", "stages"} <= keys
    assert "servers" not in keys and "train" not in keys
    assert len(keys) <= CONFIG_KEYS, f"{len(keys)} keys: before a new one, look for a better default, or remove one"
