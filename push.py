"""Pushes trained weights to the Hugging Face Hub: a run's, an adapter, a checkpoint, or a merged model.

    python push.py outputs/my-run                                 # what its training could not push, by hub.repo_id
    python push.py outputs/my-run --to me/my-run                  # all that it has: checkpoints, and the last result
    python push.py outputs/my-run/best --to me/my-run --revision main
    python push.py models/corrector --to me/corrector             # what export.py wrote

A checkpoint becomes the branch stage<N>-step_<K>, anything else `main`; model card, tokenizer and manifest go with it,
the state of an optimizer never does. What was pushed is loaded as me/my-run@REVISION, by --resume-adapter,
model.adapter and evaluate.py --adapter, or by PEFT's `revision=`. The token is HF_TOKEN, or what `hf auth login` has
kept; it is written nowhere.

Exit codes: 0 pushed, 2 nothing to push, or the Hub refuses or cannot be reached: the same command goes on from there,
74 no place for what is to be pushed.
"""

if __name__ == "__main__":
    from lib.core.errors import end_at_ctrl_c

    end_at_ctrl_c()  # the imports below take a second

import argparse
import re
from pathlib import Path

from pydantic import ValidationError

from lib.core.config import HubSettings, read_tree
from lib.core.errors import FINISHED, ConfigError, StorageError, run_script, storage_remedy
from lib.run.directory import checkpoints_in, stages_in, step_of
from lib.run.hub import push
from lib.run.outbox import OUTBOX, contents, push_all, put, revision_of, waiting


def main() -> int:
    """Pushes a folder of weights, or a run by way of its outbox."""
    args = command_line()
    folder, is_run = args.folder, (args.folder / "config.yaml").is_file()
    to = target(args, is_run)
    if is_run:
        outbox = folder / OUTBOX
        if args.revision and waiting(outbox):
            raise ConfigError(
                f"--revision {args.revision}: what waits in {outbox} has revisions of its own; push it first: python "
                f"push.py {folder}"
            )
        if args.to and not waiting(outbox):
            fill(outbox, weights_of(folder), to, args.revision)
        if not waiting(outbox):
            print(f"{folder}: nothing waits to be pushed; all of it again: python push.py {folder} --to OWNER/NAME")
            return FINISHED
        push_all(outbox, to, say)
        return FINISHED
    if not any(folder.glob("*.safetensors")):
        raise ConfigError(f"{folder}: no weights here, expected a run, an adapter or a model; give its folder")
    revision = args.revision or revision_of(folder.resolve())
    commit = push(contents(folder, to.repo_id, revision), to, revision)
    say(f"pushed {to.repo_id}@{revision} ({commit[:12]})")
    return FINISHED


def say(text: str) -> None:
    """Prints a line at once."""
    print(text, flush=True)


def command_line() -> argparse.Namespace:
    """Returns the options. Raises ConfigError for a folder that is not there."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path, help="a run, or a folder of weights")
    options.add_argument("--to", metavar="OWNER/NAME", help="the repository; default: hub.repo_id of the run's config")
    options.add_argument("--revision", metavar="BRANCH", help="default: that of the folder; a run has several")
    args = options.parse_args()
    if args.revision and not re.fullmatch(r"[\w.-]+", args.revision):
        raise ConfigError(
            f"--revision: got '{args.revision}', expected the name of a branch, of letters, digits, . _ -"
        )
    if not args.folder.is_dir():
        raise ConfigError(f"{args.folder}: there is no such folder; give a run, or a folder of weights")
    return args


def target(args: argparse.Namespace, is_run: bool) -> HubSettings:
    """Returns where to push. Raises ConfigError where nothing says it."""
    hub = (read_tree(args.folder / "config.yaml").get("hub") or {}) if is_run else {}
    if not (args.to or hub):
        why = "its config has no section hub" if is_run else "this is no run, whose config could say it"
        raise ConfigError(f"--to: is missing, and {why}; give --to OWNER/NAME")
    try:
        return HubSettings(repo_id=args.to or hub.get("repo_id"))
    except ValidationError as error:
        raise ConfigError(f"--to: got '{args.to}', expected OWNER/NAME, such as me/my-run") from error


def weights_of(run: Path) -> list[Path]:
    """Returns a run's checkpoints and its last result, in the order in which they were made."""
    steps = [folder for folder in reversed(checkpoints_in(run)) if step_of(folder)]  # step 0 was not trained
    results = [run / "final", *reversed(stages_in(run).values())]
    last = [folder for folder in results if any(folder.glob("*.safetensors"))][:1]
    if not (steps or last):
        raise ConfigError(f"{run}: there are no weights in it yet; train first")
    return steps + last


def fill(outbox: Path, folders: list[Path], to: HubSettings, revision: str | None) -> None:
    """Puts folders of weights into an outbox. Raises ConfigError for one revision of several, StorageError."""
    if revision and len(folders) > 1:
        raise ConfigError(f"--revision {revision}: is one, and there are {len(folders)} folders; give one of them")
    try:
        for folder in folders:
            put(folder, outbox, to, revision or revision_of(folder.resolve()))
    except OSError as error:
        raise StorageError(f"{outbox}: cannot be written ({error}); {storage_remedy(error)}") from error


if __name__ == "__main__":
    run_script(main)
