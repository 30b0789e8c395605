"""A frozen base that several processes hold together (FSDP2): a part of each block's weights is on each of them.

What is trained stays whole everywhere, and so do embeddings, norms and the output layer: adapters are small, and are
summed, clipped, saved and loaded as without sharding. A block is gathered while it computes. That takes every process,
so each has to run the model as often as all others: `ShardGroup` sees to it.
"""

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

from engine import backbone_of
from lib.core.errors import ConfigError
from lib.run.distributed import make_accelerator, wait_by


def shard(model: nn.Module, base: nn.Module) -> str:
    """Spreads the blocks of `base`, on which the adapters of `model` are, over all processes, which all call it.

    Returns a note on how much this process holds. Raises ConfigError where there is one process, or no blocks.
    """
    accelerator, backbone = make_accelerator(), backbone_of(base)
    lists = [child for child in backbone.children() if isinstance(child, nn.ModuleList)]
    if accelerator.num_processes == 1:
        raise ConfigError(
            "model.sharded: here is one process, expected several: launch by torchrun or accelerate "
            "(docs/gpu.md), or set model.sharded=false"
        )
    if len(lists) != 1:
        raise ConfigError(
            f"model.sharded: a model of type {base.config.model_type} has {len(lists)} lists of blocks, expected one: "
            "set model.sharded=false"
        )
    blocks = lists[0]
    mesh = init_device_mesh(accelerator.device.type, (accelerator.num_processes,))
    whole = {parameter for parameter in model.parameters() if parameter.requires_grad}
    for block in blocks:
        fully_shard(block, mesh=mesh, reshard_after_forward=True, ignored_params=whole)
    fully_shard(backbone, mesh=mesh, ignored_params=set(model.parameters()) - set(blocks.parameters()) | whole)
    model.to(accelerator.device)
    wait_by(ShardGroup(backbone).join)
    parts = (parameter.to_local() if isinstance(parameter, DTensor) else parameter for parameter in model.parameters())
    held = sum(part.numel() for part in parts)
    whole_model = sum(parameter.numel() for parameter in model.parameters())
    return f"sharded over {accelerator.num_processes} processes: this one holds {held:,} of {whole_model:,} numbers"


class ShardGroup:
    """Keeps the processes of a sharded model together: one that has nothing to compute runs the model with the others.

    Before each forward, and before each wait for others, all tell whether they go on. A forward with a gradient is one
    that all have at the same time, since its backward follows (`lib.rl.step.OptimizerStep.batches`).
    """

    def __init__(self, backbone: nn.Module):
        self._backbone = backbone
        self._group = torch.distributed.new_group(backend="gloo")  # its answers are needed on the CPU
        self._is_helping = False
        backbone.register_forward_pre_hook(self._begin, prepend=True)

    @torch.no_grad()
    def join(self) -> None:
        """Runs the model for nothing as long as another process runs it."""
        self._is_helping = True
        while self._anyone(False):
            token = torch.zeros(1, 1, dtype=torch.long, device=next(self._backbone.parameters()).device)
            self._backbone(input_ids=token, use_cache=False)
        self._is_helping = False

    def _begin(self, *_: object) -> None:
        if self._is_helping:
            return
        if torch.is_grad_enabled():
            self.join()
        else:
            self._anyone(True)

    def _anyone(self, goes_on: bool) -> bool:
        flag = torch.tensor([int(goes_on)])
        torch.distributed.all_reduce(flag, group=self._group)
        return bool(flag)
