"""Which tensors a training step has, and what hooks may call them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

# What Keras adds to a scope's name when the name was taken.
_SUFFIX = re.compile(r"_\d+$")


class StepTensor(NamedTuple):
    """A tensor of the step that can be tapped.

    Attributes:
      key: how the tap asks for it: an alias such as `loss`, or the tensor's name
        in the graph of the step.
      dtype: its dtype.
      shape: its static shape, possibly unknown.
    """

    key: str
    dtype: Any
    shape: Any


def canonical(name: str, model_name: str) -> str:
    """A tensor name of the step without what Keras made up.

    `"digits_1/hidden_1/Relu:0"` of the model `digits` is `"hidden/Relu:0"`: the
    scope of the model goes and so do the `_N` that Keras appends to scopes that
    were used before.
    """
    op, _, index = name.partition(":")
    *scopes, last = op.split("/")
    scopes = [_SUFFIX.sub("", scope) for scope in scopes]
    if scopes and scopes[0] == _SUFFIX.sub("", model_name):
        scopes = scopes[1:]
    return f"{'/'.join([*scopes, last])}:{index or '0'}"


class StepNames:
    """The catalogue of one traced step.

    Names are tried in this order: an alias that hookbridge gives (`loss:0`, the
    metrics, `gradients/<variable>:0`); the tensor's own name in the step; its
    canonical name. The first tensor in the order of the trace wins, so that a
    layer's forward output comes before what the gradient makes of it.
    """

    def __init__(self, model_name: str) -> None:
        self._model_name = model_name
        self.aliases: dict[str, StepTensor] = {}
        self.traced: dict[str, StepTensor] = {}
        self._canonical: dict[str, StepTensor] = {}
        self._without_suffix: dict[str, StepTensor] = {}

    def add_alias(self, alias: str, dtype: Any, shape: Any) -> None:
        self.aliases.setdefault(f"{alias}:0", StepTensor(alias, dtype, shape))

    def add_traced(self, tensors: Iterable[Any]) -> None:
        for tensor in tensors:
            if tensor.dtype.name in ("resource", "variant"):
                continue
            item = StepTensor(tensor.name, tensor.dtype, tensor.shape)
            self.traced[tensor.name] = item
            name = canonical(tensor.name, self._model_name)
            self._canonical.setdefault(name, item)
            op, _, index = name.partition(":")
            self._without_suffix.setdefault(f"{_SUFFIX.sub('', op)}:{index}", item)

    def find(self, name: str) -> StepTensor | None:
        """The tensor that `name` (`"op:0"` or `"op"`) means, if there is one."""
        full = name if ":" in name else f"{name}:0"
        for table in (
            self.aliases,
            self.traced,
            self._canonical,
            self._without_suffix,
        ):
            if full in table:
                return table[full]
        return None

    def nearest(self, name: str, others: Iterable[str] = (), most: int = 5) -> list[str]:
        """Names that exist and look like `name`, most alike first."""
        full = name if ":" in name else f"{name}:0"
        known = dict.fromkeys([*others, *self.aliases, *self._canonical])
        near = difflib.get_close_matches(full, known, n=most, cutoff=0.4)
        op = full.split(":")[0].split("/")[-1]
        tail = [k for k in known if k.split(":")[0].split("/")[-1] == op]
        return list(dict.fromkeys([*near, *tail]))[:most]
