"""Whether the model hub answers: asked in seconds, where its client would retry for a minute before it gives up."""

import contextlib
from collections.abc import Iterator

PROBE_SECONDS = 5


@contextlib.contextmanager
def offline_unless_reachable() -> Iterator[bool]:
    """Yields whether the hub answers; if it does not, only what lies in the local cache is tried inside."""
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
