"""A GPU of which only devices, dtypes and shapes are known: code runs on it with any CPU build of torch.

    with fake_cuda(monkeypatch) as seen:
        ...  # tensors on `cuda` have no numbers; `seen` is a Watch

An operator whose inputs are on two devices raises, as on a GPU. What the host reads of a tensor is answered with zeros.
A backward pass does not run: it needs the streams of a real device.
"""

import contextlib
from collections import Counter

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

VIEWS = {
    "view", "_unsafe_view", "t", "transpose", "expand", "unsqueeze", "squeeze", "slice", "select", "narrow", "split",
    "split_with_sizes", "unbind", "detach", "alias", "permute", "as_strided", "_reshape_alias", "lift_fresh",
}  # fmt: skip
MEMORY = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided"}
# one kernel on a GPU, which a build without one would write out as several
FUSED = {"scaled_dot_product_attention", "_fused_rms_norm"}
GUARDED = {torch.Tensor.copy_: torch.ops.aten.copy_, torch.Tensor.__invert__: torch.ops.aten.bitwise_not}
READ = (
    torch.Tensor.item, torch.Tensor.__int__, torch.Tensor.__float__, torch.Tensor.__bool__, torch.Tensor.__index__,
    torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.nonzero,
)  # fmt: skip


class Watch(TorchDispatchMode):
    """The operators that a GPU would run, those that make the host wait, and tensors made elsewhere."""

    def __init__(self):
        super().__init__()
        self.launched: Counter[str] = Counter()
        self.waits: list[str] = []
        self.strays: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        if func.namespace == "aten" and name not in FUSED:
            with self:  # an operator that is made of others is not counted itself
                if (result := func.decompose(*args, **kwargs)) is not NotImplemented:
                    return result
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, FakeTensor)]
        for tensor in tensors:
            tensor.constant = None  # or torch computes with known numbers, on a GPU that is not there
        result = func(*args, **kwargs)
        if func.namespace == "aten" and name not in VIEWS | MEMORY:
            self.launched[name] += 1
        if isinstance(result, FakeTensor) and not result.is_cuda and not tensors and name not in VIEWS:
            self.strays.append(f"{name} {tuple(result.shape)}")
        if name in ("_to_copy", "copy_") and len({tensor.device for tensor in (*tensors, result)}) > 1:
            self.waits.append(f"{name} between host and GPU")
        return result


class _Host(TorchFunctionMode):
    """Answers what the host reads, and does without a GPU what asks for the guard of its device."""

    def __init__(self, seen: Watch):
        super().__init__()
        self.seen = seen

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in GUARDED:
            return GUARDED[func](*args, **kwargs)
        if func is torch.Tensor.__getitem__:
            return self._indexed(*args)
        if func is torch.Tensor.__setitem__:
            return self._assign(*args)
        if func is torch.tensor:
            return self._from_host(*args, **kwargs)
        if func in READ:
            return self._answer(func, args[0])
        return func(*args, **kwargs)

    def _from_host(self, data, dtype=None, device="cpu"):
        with unset_fake_temporarily():
            real = torch.tensor(data, dtype=dtype)
        fake = torch.empty(real.shape, dtype=real.dtype, device=device)
        if fake.is_cuda:
            self.seen.waits.append("tensor")
        return fake

    def _answer(self, func, tensor):
        if tensor.is_cuda:
            self.seen.waits.append(func.__name__)
        if func is torch.Tensor.nonzero:
            return torch.empty(0, tensor.ndim, dtype=torch.long, device=tensor.device)
        with unset_fake_temporarily():
            zeros = torch.zeros(tensor.shape, dtype=tensor.dtype)
            return np.zeros(tensor.shape, dtype=zeros.numpy().dtype) if func is torch.Tensor.numpy else func(zeros)

    def _indexed(self, x, index):
        x, tensors = self._sliced(x, index)
        return torch.ops.aten.index(x, tensors) if tensors else x

    def _assign(self, x, index, value):
        x, tensors = self._sliced(x, index)
        if not isinstance(value, torch.Tensor):
            value = torch.full((), value, dtype=x.dtype, device=x.device)
        if tensors:
            torch.ops.aten.index_put_(x, tensors, value)
        else:
            torch.ops.aten.copy_(x, value)

    def _sliced(self, x, index):
        """Returns x with all of an index applied but its tensors, and these by dimension."""
        index = index if isinstance(index, tuple) else (index,)
        rest = x.ndim - sum(part is not None and part is not Ellipsis for part in index)
        index = [more for part in index for more in ([slice(None)] * rest if part is Ellipsis else [part])]
        dim, tensors = 0, {}
        for part in index:
            if isinstance(part, int):
                x = x.select(dim, part)
                continue
            if part is None:
                x = x.unsqueeze(dim)
            elif isinstance(part, slice):
                x = torch.ops.aten.slice(x, dim, part.start, part.stop, part.step or 1)
            elif isinstance(part, torch.Tensor) and part.dtype == torch.bool:  # as if it were true everywhere
                if x.shape[dim : dim + part.ndim] != part.shape or x.device != part.device:
                    raise RuntimeError(f"a mask {part.shape} on {part.device} for {x.shape} on {x.device}")
                self.seen.waits.append("mask")
                x = x.flatten(dim, dim + part.ndim - 1)
            else:
                tensors[dim] = part if isinstance(part, torch.Tensor) else torch.tensor(list(part), device=x.device)
            dim += 1
        return x, [tensors.get(at) for at in range(max(tensors, default=-1) + 1)]


@contextlib.contextmanager
def fake_cuda(patch):
    """Makes `cuda` a device of fake tensors inside; yields the Watch over them. `patch` is pytest's monkeypatch."""
    patch.setattr(torch.cuda, "mem_get_info", lambda *_: (2**36, 2**36))
    patch.setattr(torch.cuda, "memory_reserved", lambda *_: 0)
    patch.setattr(torch.cuda, "memory_allocated", lambda *_: 0)
    patch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    seen = Watch()
    with FakeTensorMode(allow_non_fake_inputs=True), seen, _Host(seen):
        yield seen


def moved(model):
    """A model whose weights are on the fake GPU; to be called inside the context, with one on `meta`."""
    for module in model.modules():
        for name, weight in module._parameters.items():
            if weight is not None:
                there = torch.empty(weight.shape, dtype=weight.dtype, device="cuda")
                module._parameters[name] = torch.nn.Parameter(there, weight.requires_grad)
        for name, buffer in module._buffers.items():
            module._buffers[name] = torch.empty(buffer.shape, dtype=buffer.dtype, device="cuda")
    return model
