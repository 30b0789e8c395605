"""The accelerator of a process."""

from datetime import timedelta
from types import SimpleNamespace

from lib.run import distributed


def test_a_process_waits_for_others_longer_than_a_rollout_takes(monkeypatch):
    """NCCL's own ten minutes would end a run whose other ranks still sample, or whose first one runs a command."""
    settings = {}

    def accelerator(**how):
        settings.update(how)
        return SimpleNamespace(gradient_accumulation_steps=1)

    monkeypatch.setattr(distributed, "Accelerator", accelerator)
    distributed.make_accelerator()
    timeouts = [handler.timeout for handler in settings["kwargs_handlers"] if hasattr(handler, "timeout")]
    assert timeouts == [timedelta(hours=2)]
