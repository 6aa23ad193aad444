"""What a place in a file says about the Keras that it was written for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeAlias, TypeVar

from hookbridge.old_programs.names import keras_arguments
from hookbridge.old_programs.names.old_keras import KERAS, last_keras

# The kind of a sign, a name, the line.
_Sign: TypeAlias = tuple[str, str, int]
_Use = TypeVar("_Use")
# The last Keras that was never a part of TensorFlow 2.
_OLD = 2.3
# Methods of models that Keras 3 has no more.
_METHODS = frozenset(("evaluate_generator", "fit_generator", "predict_generator"))
# What Keras calls the accuracy in the logs of an epoch: until 2.2, and since.
_ACC, _ACCURACY = frozenset({"acc", "val_acc"}), frozenset({"accuracy", "val_accuracy"})
_LOGS = ("hist", "history", "logs")
# The kinds of signs that `key_of_old_logs` puts together.
_KINDS = ("acc_read", "accuracy_read", "acc_asked", "accuracy_asked")


def of_name(name: str, line: int) -> Iterator[_Sign]:
    """What a dotted name shows: only old releases of Keras have some."""
    if name.startswith(f"{KERAS}.") and (last := last_keras(name)) < 3:
        yield "old" if last <= _OLD else "keras2", name, line


def of_method(node: ast.Attribute) -> Iterator[_Sign]:
    """What a method shows of a model that Keras may have made."""
    if node.attr in _METHODS:
        yield "keras2_method", f".{node.attr}()", node.lineno


def of_call(call: ast.Call, function: str) -> Iterator[_Sign]:
    """What the arguments of a call show."""
    if not call.keywords and len(call.args) < 3:
        return
    has_rate = any(keyword.arg == keras_arguments.RATE for keyword in call.keywords)
    if has_rate and ".optimizers." in function and "keras." in function:
        yield "keras2", f"{function}(lr=)", call.lineno
        yield "keras_argument", function, call.lineno
    if keras_arguments.is_of_keras1(call, function):
        name = function or f".{getattr(call.func, 'attr', '')}"
        yield "old", f"{name}() as of Keras 1", call.lineno
        yield "keras_argument", function, call.lineno
    for keyword in call.keywords:
        if keyword.arg == "monitor":
            yield from _read(keyword.value)
        elif keyword.arg == "metrics":
            yield from _asked(keyword.value)


def of_key(node: ast.Subscript) -> Iterator[_Sign]:
    """What the key of a log shows: `history.history["acc"]`."""
    name = getattr(node.value, "attr", getattr(node.value, "id", ""))
    if name in _LOGS:
        yield from _read(node.slice)


def _read(node: ast.expr) -> Iterator[_Sign]:
    value = node.value if isinstance(node, ast.Constant) else None
    if value in _ACC:
        yield "acc_read", f'history["{value}"]', node.lineno
    elif value in _ACCURACY:
        yield "accuracy_read", f'history["{value}"]', node.lineno


def _asked(node: ast.expr) -> Iterator[_Sign]:
    for one in getattr(node, "elts", ()):
        value = one.value if isinstance(one, ast.Constant) else None
        if value in ("acc", "accuracy"):
            yield f"{value}_asked", value, one.lineno


def key_of_old_logs(first_uses: dict[str, _Use]) -> _Use | None:
    """The key of a log that only Keras until 2.2 gave; None if there is none.

    It called `metrics=["accuracy"]` `acc`.

    Args:
      first_uses: the first use of each kind in a file. Those of logs are taken out.
    """
    acc, accuracy, as_acc, as_accuracy = (first_uses.pop(k, None) for k in _KINDS)
    is_of_keras = "keras" in first_uses and as_accuracy is not None
    return acc if is_of_keras and not (accuracy or as_acc) else None
