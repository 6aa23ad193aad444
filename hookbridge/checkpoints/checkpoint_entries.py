"""Which entry of a TF1 checkpoint belongs to a variable of a Keras model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from hookbridge import errors
from hookbridge.adapters.keras_model import optimizers
from hookbridge.adapters.keras_model.variables import ModelVariable
from hookbridge.ground.protocols import KerasModel

# Slots of v1 optimizers: (kind of optimizer, Keras's slot names) -> suffix that the
# v1 optimizer appends to the variable's name.
_SLOTS: dict[tuple[str, str], str] = {
    ("adam", "m"): "Adam",
    ("adam", "momentum"): "Adam",
    ("adam", "v"): "Adam_1",
    ("adam", "velocity"): "Adam_1",
    ("sgd", "m"): "Momentum",
    ("sgd", "momentum"): "Momentum",
    ("adagrad", "accumulator"): "Adagrad",
    ("rmsprop", "velocity"): "RMSProp",
    ("rmsprop", "momentum"): "RMSProp_1",
    ("adadelta", "accumulated_grad"): "Adadelta",
    ("adadelta", "accumulated_delta_var"): "Adadelta_1",
    ("ftrl", "accumulator"): "Ftrl",
    ("ftrl", "linear"): "Ftrl_1",
}


def entry_of(
    model: KerasModel,
    variable: ModelVariable,
    shapes: Mapping[str, Any],
    lookup: Callable[[str], str | None] | None,
    variables: list[ModelVariable],
) -> str | None:
    """The checkpoint entry for a variable, or None."""
    name = variable.name
    choice = lookup(name) if lookup is not None else None
    if choice is not None:
        _check_choice(name, choice, shapes)
        return choice
    candidates = [name, f"{model.name}/{name}"]
    if name.endswith(("/iterations", "/iteration", "/iter")):
        candidates.append("global_step")
    slot = _slot(model, name, variables)
    if slot is not None:
        weight, suffix = slot
        mapped = (lookup(weight) if lookup is not None else None) or weight
        candidates.append(f"{mapped}/{suffix}")
    for candidate in candidates:
        if candidate in shapes:
            return candidate
    result = _entry_with_another_number(model, name, shapes)
    if result is None and _kind(model) == "multioptimizer":
        return _inner_entry(model, name, shapes, variables)
    return result


def _entry_with_another_number(
    model: KerasModel, name: str, shapes: Mapping[str, Any]
) -> str | None:
    """The only entry for a variable of the optimizer but for the numbers in names."""
    scope = getattr(getattr(model, "optimizer", None), "name", "")
    if not name.startswith(f"{scope}/"):
        return None
    bare = _unnumbered(model, name)
    same = [entry for entry in shapes if _unnumbered(model, entry) == bare]
    return same[0] if len(same) == 1 else None


def _check_choice(name: str, choice: str, shapes: Mapping[str, Any]) -> None:
    """Refuses an entry that `names` gives and the checkpoint does not have."""
    if choice not in shapes:
        raise errors.InvalidArgumentError(
            f"`names` maps `{name}` to `{choice}`, which the checkpoint does not "
            f"have. It has: {', '.join(sorted(shapes))}."
        )


def _inner_entry(
    model: KerasModel,
    name: str,
    shapes: Mapping[str, Any],
    variables: list[ModelVariable],
) -> str | None:
    """The entry of a variable of an optimizer inside a `MultiOptimizer`.

    Keras numbers these optimizers too: the second of a kind in the model is the second
    of that kind in the checkpoint.
    """
    scope, _, rest = name.rpartition("/")
    theirs = _inner_scopes(shapes)
    for kind, scopes in _inner_scopes(each.name for each in variables).items():
        if scope not in scopes or len(theirs.get(kind, ())) != len(scopes):
            continue
        other = theirs[kind][scopes.index(scope)]
        entries = [entry for entry in shapes if entry.rpartition("/")[0] == other]
        same = [
            e
            for e in entries
            if _bare(model, e[len(other) + 1 :]) == _bare(model, rest)
        ]
        return same[0] if len(same) == 1 else None
    return None


def _inner_scopes(names: Iterable[str]) -> dict[tuple[str, str], list[str]]:
    """The scopes `outer/inner` of names, by kind, in the order of their numbers."""
    found: dict[tuple[str, str], dict[str, tuple[int, int]]] = {}
    for name in names:
        parts = name.split("/")
        if len(parts) == 3:
            (outer, first), (inner, second) = map(_numbered, parts[:2])
            found.setdefault((outer, inner), {})["/".join(parts[:2])] = (first, second)
    return {kind: sorted(each, key=each.__getitem__) for kind, each in found.items()}


def _numbered(name: str) -> tuple[str, int]:
    """A name without the number that Keras adds, and the number."""
    match = re.fullmatch(r"(.*?)(?:_(\d+))?", name)
    assert match is not None
    return match[1], int(match[2] or 0)


def _unnumbered(model: KerasModel, name: str) -> str:
    """The name of an optimizer's variable without the numbers that Keras adds.

    Keras numbers the models of a process: the second one has
    `adam_1/sequential_1_hidden_kernel_momentum` where the first one has
    `adam/sequential_hidden_kernel_momentum`.
    """
    scope, _, rest = name.partition("/")
    return f"{_numbered(scope)[0]}/{_bare(model, rest)}"


def _bare(model: KerasModel, name: str) -> str:
    """The name of an optimizer's variable without that of the model."""
    base = re.escape(_numbered(str(model.name))[0])
    return re.sub(rf"^{base}(_\d+)?_", "", name)


def _kind(model: KerasModel) -> str:
    # A model of Keras 3 that is not compiled has no such attribute.
    return type(getattr(model, "optimizer", None)).__name__.lower()


def _slot(
    model: KerasModel, name: str, variables: list[ModelVariable]
) -> tuple[str, str] | None:
    """`(weight, v1 suffix)` of an optimizer's slot: Keras has two ways to name it.

    Keras 2: `Adam/m/hidden/kernel`; Keras 3: `adam/model_hidden_kernel_momentum`.
    """
    scope, _, rest = name.partition("/")
    if scope != getattr(getattr(model, "optimizer", None), "name", None):
        return None
    for weight in (v.name for v in variables if v.trainable):
        slot = None
        if rest.endswith(f"/{weight}"):
            slot = rest.removesuffix(f"/{weight}")
        for flat in (weight, f"{model.name}/{weight}"):
            prefix = flat.replace("/", "_") + "_"
            if rest.startswith(prefix):
                slot = rest.removeprefix(prefix)
        suffix = _SLOTS.get((_kind(model), slot)) if slot else None
        if suffix is not None:
            return weight, suffix
    return None


def converted(model: KerasModel, entry: str, value: object) -> Any:
    """The value of an entry as the model's variable takes it.

    A v1 `MomentumOptimizer` accumulates gradients, Keras's SGD accumulates updates.
    """
    if entry.endswith("/Momentum"):
        rate = optimizers.learning_rate_variable(model.optimizer)
        if rate is not None:
            return -np.asarray(rate) * value
    return value
