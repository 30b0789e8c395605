"""Asks within seconds whether the Hugging Face Hub answers, where its client would retry for a minute; uploads rows."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from lib.core.config import Upload
from lib.core.errors import ConfigError

PROBE_SECONDS = 5


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


def upload(path: Path, to: Upload) -> None:
    """Uploads a file of rows as a data set's train split. ConfigError if the Hub refuses or cannot be reached."""
    import httpx
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    try:
        hub = HfApi()
        hub.create_repo(to.repo_id, repo_type="dataset", private=to.private, exist_ok=True)
        hub.upload_file(path_or_fileobj=path, path_in_repo="train.jsonl", repo_id=to.repo_id, repo_type="dataset")
    except (HfHubHTTPError, httpx.HTTPError, ValueError, OSError) as error:
        reason = " ".join(str(error).split()) or repr(error)
        raise ConfigError(
            f"upload.repo_id: '{to.repo_id}' could not be written ({reason}); the rows are in {path}. Log in with "
            "`hf auth login`, then run again with --resume"
        ) from error
