"""The Hugging Face Hub: asks within seconds whether it answers, pushes weights, fetches adapters.

Its client would retry for a minute. The token is the client's affair: HF_TOKEN, or what `hf auth login` has kept.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from lib.core.config import HubSettings
from lib.core.errors import ConfigError
from lib.run.directory import ADAPTER, ADAPTER_CONFIG, CARD, EXTRA, EXTRA_CONFIG, adapter_in

PROBE_SECONDS = 5
MAIN = "main"  # the revision that is taken where none is named
PLACE = re.compile(r"(?P<repo>[\w-][\w.-]*/[\w.-]+)@(?P<revision>[\w./-]+)")
WEIGHTS = ("*.safetensors", "*.safetensors.index.json")
BESIDE = (  # the rest of what a model or an adapter is; no state of an optimizer
    ADAPTER_CONFIG, EXTRA_CONFIG, CARD, "config.json", "generation_config.json", "MANIFEST.json", "tokenizer*",
    "special_tokens_map.json", "added_tokens.json", "vocab.*", "merges.txt", "*.model", "*.tiktoken", "chat_template*",
)  # fmt: skip
OF_ADAPTERS = (ADAPTER, EXTRA, *BESIDE)


@contextlib.contextmanager
def offline_unless_reachable() -> Iterator[bool]:
    """Yields whether the Hugging Face Hub answers; if not, only the local cache is used inside."""
    import datasets
    import httpx
    from huggingface_hub import constants
    from huggingface_hub.utils import get_session

    before = datasets.config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE
    online = not any(before)
    if online:
        try:
            get_session().head(constants.ENDPOINT, timeout=PROBE_SECONDS)
        except httpx.HTTPError:
            online = False
    datasets.config.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE = not online
    try:
        yield online
    finally:
        datasets.config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE = before


def push(files: Mapping[str, Path | bytes], to: HubSettings, revision: str) -> str:
    """Commits files, by name, to a revision; returns the id of the commit.

    The repository and the branch are made if they are not there; other files in them stay. What an earlier attempt
    has uploaded is not uploaded again. ConfigError if the Hub refuses or cannot be reached.
    """
    from huggingface_hub import CommitOperationAdd, HfApi

    with _told(f"hub.repo_id: '{to.repo_id}' could not be written", ""):
        hub = HfApi()
        hub.create_repo(to.repo_id, private=True, exist_ok=True)
        if revision != MAIN:
            hub.create_branch(to.repo_id, branch=revision, exist_ok=True)
        additions = [CommitOperationAdd(name, content) for name, content in files.items()]
        done = hub.create_commit(to.repo_id, additions, commit_message=f"Weights of {revision}", revision=revision)
    return str(done.oid)


def local_adapter(name: str | Path, key: str) -> Path:
    """Returns the folder of an adapter: `name` itself or, of OWNER/NAME@REVISION on the Hub, a copy in its local cache.

    ConfigError, naming the option or config key `key`, if there is none, or the Hub has none.
    """
    from_hub = PLACE.fullmatch(str(name))
    if from_hub is None or Path(name).exists():
        return adapter_in(Path(name), key)
    from huggingface_hub import snapshot_download

    repo, revision = from_hub["repo"], from_hub["revision"]
    with (
        offline_unless_reachable() as online,
        _told(
            f"{key}: {name} could not be fetched",
            "; give a revision of it that exists, log in with `hf auth login` if it is private, or give a folder"
            if online
            else "; the Hub cannot be reached and the local cache lacks it: connect, or give a folder",
        ),
    ):
        folder = Path(snapshot_download(repo, revision=revision, allow_patterns=list(OF_ADAPTERS)))
    try:
        return adapter_in(folder, key)
    except ConfigError as error:
        raise ConfigError(f"{key}: {name} has no {ADAPTER}, so it is no adapter; give another revision") from error


@contextlib.contextmanager
def _told(what: str, then: str) -> Iterator[None]:
    """Turns the errors of the Hub's client into `what`, the reason and `then`."""
    import httpx
    from huggingface_hub.errors import HfHubHTTPError

    try:
        yield
    except (HfHubHTTPError, httpx.HTTPError, ValueError, OSError, RuntimeError) as error:
        reason = " ".join(str(error).split()) or repr(error)
        raise ConfigError(f"{what} ({reason}){then}") from error
