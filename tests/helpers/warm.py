"""The process from which the tests fork scripts: it has imported their modules and done the work that they share."""

import gc
import importlib

IMPORTED = [
    "pytest", "collect_rollouts", "train", "rl_train_gspo_selfplay", "sft_train", "sweep", "helpers.server",
    "helpers.faults", "lib.rl.task", "lib.rl.score", "lib.play.gspo", "lib.model.scratch", "lib.generators.native",
    "lib.generators.openai", "peft", "datasets", "trl.trainer.sft_trainer",
]  # fmt: skip

gc.disable()  # a fifth of the imports would be the collector's
for name in IMPORTED:
    importlib.import_module(name)
mappings = importlib.import_module("transformers.conversion_mapping")
mappings.get_checkpoint_conversion_mapping("qwen3")  # compiles six hundred patterns, before a process' first model
gc.freeze()  # otherwise a script's collector would walk all this, and so copy it
gc.enable()
