"""How large the project may be: a bound on what a reader has to know, which only goes down."""

from lib.core.config import KINDS, keys_of

CONFIG_KEYS = 309


def test_the_configs_have_no_more_keys():
    """Each dotted key counts once over all scripts, and a key of sections that the user names once for all of them."""
    keys = {key for kind in KINDS for key in keys_of(kind)}
    assert {"seed", "servers.NAME.base_url", "reward.by_task.NAME.fn", "stages"} <= keys
    assert "servers" not in keys and "train" not in keys
    assert len(keys) <= CONFIG_KEYS, f"{len(keys)} keys: before a new one, look for a better default, or remove one"
