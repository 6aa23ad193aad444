"""PyTorch's modules as arrays of TensorFlow's layout, without importing PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

# Names of a normalization's tensors in TensorFlow.
_NORMALIZATIONS = {
    "bias": "beta",
    "running_mean": "moving_mean",
    "running_var": "moving_variance",
    "weight": "gamma",
}


class _Tensor(NamedTuple):
    """A tensor of a module: its name in TensorFlow, and the order of its axes there."""

    name: str
    tensor: Any
    axes: tuple[int, ...]


def is_model(value: object) -> bool:
    """Return whether it is a `torch.nn.Module`."""
    return hasattr(value, "named_modules") and hasattr(value, "named_parameters")


def arrays_of(module: object) -> dict[str, Any]:
    """Return the weights and moving averages of a module: `{name: array}`.

    A kernel has the output last, as in TensorFlow. The names are those of modules with
    slashes, and `kernel`, `gamma`, `beta`, `moving_mean`, `moving_variance`.
    """
    return {part.name: _array(part, part.tensor) for part in _tensors(module)}


def assign(module: Any, arrays: Mapping[str, Any]) -> None:
    """Give a module the values of arrays that have the names of `arrays_of`."""
    for part in _tensors(module):
        if part.name in arrays:
            back = np.argsort(part.axes) if part.axes else part.axes
            value = np.ascontiguousarray(np.transpose(arrays[part.name], back))
            data = part.tensor.data
            data.copy_(data.new_tensor(value))


class Gradients:
    """The gradients of a module as `backward` makes them, before they are clipped."""

    def __init__(self, module: object) -> None:
        self._found: dict[str, Any] = {}
        self._hooks: list[Any] = [
            part.tensor.register_post_accumulate_grad_hook(self._noting(part))
            for part in _tensors(module)
            if getattr(part.tensor, "requires_grad", False)
        ]

    def _noting(self, each: _Tensor) -> Callable[[Any], None]:
        def note(tensor: Any) -> None:
            # What a clipping changes in place is not this array.
            self._found[each.name] = _array(each, tensor.grad).copy()

        return note

    def end(self) -> dict[str, Any]:
        """Remove what listens, and return `{name: array}`."""
        for hook in self._hooks:
            hook.remove()
        return self._found


def _array(each: _Tensor, tensor: Any) -> Any:
    value = tensor.detach().to("cpu")
    if str(value.dtype) == "torch.bfloat16":  # NumPy has none
        value = value.float()
    return np.array(np.transpose(value.numpy(), each.axes))


def _tensors(module: Any) -> Iterator[_Tensor]:
    """Yield all tensors of a module and those in it, each once."""
    seen: set[int] = set()
    for path, part in module.named_modules():
        tensors = [
            *part.named_parameters(recurse=False),
            *part.named_buffers(recurse=False),
        ]
        for name, tensor in tensors:
            if name != "num_batches_tracked" and id(tensor) not in seen:
                seen.add(id(tensor))
                named = _name(part, name)
                full = "/".join([*path.split("."), named] if path else [named])
                yield _Tensor(full, tensor, _axes(part, name, tensor.ndim))


def _name(module: object, name: str) -> str:
    """Return the name in TensorFlow."""
    if hasattr(module, "eps"):  # a normalization
        return _NORMALIZATIONS.get(name, name)
    kinds = [c.__name__ for c in type(module).__mro__]
    if name == "weight":
        return "embeddings" if "Embedding" in kinds else "kernel"
    return name


def _axes(module: object, name: str, rank: int) -> tuple[int, ...]:
    """Return the order of axes that TensorFlow has."""
    plain = tuple(range(rank))
    kinds = [c.__name__ for c in type(module).__mro__]
    if rank < 2 or "Embedding" in kinds or not name.startswith("weight"):
        return plain
    # [out, in, ...] of PyTorch becomes [..., in, out]; transposed convolutions have
    # [in, out, ...] and become [..., out, in]. So all are turned in one way.
    return (*plain[2:], 1, 0)
