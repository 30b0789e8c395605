"""The trained weights that a command line names: by a run, an adapter, a whole model, or a config alone."""

import argparse
from pathlib import Path
from typing import Any

from lib.core.config import ScoreConfig, SelfPlayConfig, load, read_tree
from lib.core.errors import ConfigError
from lib.run.directory import ADAPTER_CONFIG, EXTRA_CONFIG, position
from lib.run.hub import local_adapter

SETTINGS = "rematch.yaml"  # next to an exported model: what its card shows of the run's config


def named_weights(args: argparse.Namespace) -> tuple[Any, Path | None]:
    """Returns the config and the adapter that the command line of `parser` names, no adapter for a base or whole model.

    The first of `args.overrides` names them unless it is key=value; without it, `--config` does. What supervised
    fine-tuning made has no prompts and stands below an adapter: it needs a `--config`. Raises ConfigError.
    """
    words, config, adapter = list(args.overrides), args.config, None
    what = Path(words.pop(0)) if words and ("=" not in words[0] or Path(words[0]).exists()) else None
    if what is None and config is None:
        raise ConfigError("nothing is named: give a run, an adapter or a model, or --config FILE for its base")
    if what and (what / "config.json").is_file():
        config = config or what / SETTINGS
        words += [f"model.name={what}", "model.adapter=null"]
    elif what:
        is_run = (what / "config.yaml").is_file()
        folder = what if is_run else local_adapter(what, "the first argument")
        places = (folder, *folder.resolve().parents[:2])
        run = next((place / "config.yaml" for place in places if (place / "config.yaml").is_file()), None)
        is_tuned = run is not None and "reward" not in read_tree(run)
        adapter = (what / "final" if is_tuned else newest_adapter(what)) if is_run else folder
        if is_tuned:
            words += [f"model.adapter={adapter}"] if (adapter / ADAPTER_CONFIG).is_file() else [f"model.name={adapter}"]
            adapter, run = None, None
        config = config or run or folder / SETTINGS
    if config is None or not config.is_file():
        raise ConfigError(
            f"{what or config}: no config says how to ask it: add --config FILE, the config of a run of train.py or "
            "rl_train_gspo_selfplay.py"
        )
    loaded = load((SelfPlayConfig, ScoreConfig), config, words)
    if config.name == SETTINGS and any(server.base_url is None for server in loaded.servers.values()):
        raise ConfigError(f"{config}: it has no address of the run's servers, which may hold keys: add --config FILE")
    return loaded, adapter


def newest_adapter(run: Path) -> Path:
    """Returns the adapter of a run's last finished stage, or its newest checkpoint if that is further on."""
    configs = (path for name in (ADAPTER_CONFIG, EXTRA_CONFIG) for path in run.glob(f"stage*/**/{name}"))
    adapters = {position(path.parent): path.parent for path in configs}
    adapters.pop(None, None)
    if not adapters:
        raise ConfigError(f"{run}: there is no adapter in it, expected stage1 or stage2; give a run directory")
    return adapters[max(adapters)]
