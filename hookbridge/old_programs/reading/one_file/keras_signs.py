"""What a place in a file says about the Keras that it was written for."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TypeAlias, TypeVar

from hookbridge.tf1_names import keras_arguments
from hookbridge.tf1_names.old_keras import KERAS, last_keras
from hookbridge.tf1_names.syntax import (
    called_method,
    keywords,
    last_name,
    text_of,
)

# What a place shows: the kind of evidence (a field of `Evidence`), a name, the line.
Sign: TypeAlias = tuple[str, str, int]
_Use = TypeVar("_Use")
# The last Keras that was never a part of TensorFlow 2.
_OLD = 2.3
# What Keras calls the accuracy in the logs of an epoch: until 2.2, and since.
_ACC, _ACCURACY = frozenset({"acc", "val_acc"}), frozenset({"accuracy", "val_accuracy"})
_LOGS = ("hist", "history", "logs")
# Arguments that may show something, whatever is called.
_TELLING = keras_arguments.OLD | {"metrics", "monitor"}
# The kinds of signs that `key_of_old_logs` puts together.
_KINDS = ("acc_read", "accuracy_read", "acc_asked", "accuracy_asked")


def of_name(name: str, line: int) -> Iterator[Sign]:
    """Yield what a dotted name shows: only old releases of Keras have some."""
    if name.startswith(f"{KERAS}.") and (last_release := last_keras(name)) < 3:
        yield "old" if last_release <= _OLD else "keras2", name, line


def of_call(call: ast.Call, function: str) -> Iterator[Sign]:
    """Yield what the arguments of a call show."""
    argument_names = keywords(call).keys()
    if "keras" not in function and argument_names.isdisjoint(_TELLING):
        return
    if "keras." in function and ".optimizers." in function:
        for name in sorted(argument_names & keras_arguments.OF_OLD_OPTIMIZERS):
            yield "keras2", f"{function}({name}=)", call.lineno
            yield "keras_argument", function, call.lineno
    if keras_arguments.is_of_keras1(call, function):
        name = function or f".{called_method(call)}"
        yield "old", f"{name}() as of Keras 1", call.lineno
        yield "keras_argument", function, call.lineno
    yield from of_logs(call)


def of_logs(node: ast.AST) -> Iterator[Sign]:
    """Yield what a call, or `history.history["acc"]`, shows of the keys of logs."""
    if isinstance(node, ast.Subscript):
        if last_name(node.value) in _LOGS:
            yield from _read(node.slice)
    elif isinstance(node, ast.Call):
        for name, value in keywords(node).items():
            if name == "monitor":
                yield from _read(value)
            elif name == "metrics":
                yield from _requested_accuracy(value)


def new_keys(nodes: Iterable[ast.AST]) -> list[tuple[str, int]]:
    """Return the keys of logs in a file that Keras has since 2.3, and their lines.

    There are none if the file reads the old ones, too.
    """
    signs = [sign for node in nodes for sign in of_logs(node)]
    kinds = {kind for kind, _, _ in signs}
    if kinds & {"acc_read", "acc_asked"} or "accuracy_asked" not in kinds:
        return []
    return [(name, line) for kind, name, line in signs if kind == "accuracy_read"]


def _read(node: ast.expr) -> Iterator[Sign]:
    value = text_of(node)
    if value in _ACC:
        yield "acc_read", f'history["{value}"]', node.lineno
    elif value in _ACCURACY:
        yield "accuracy_read", f'history["{value}"]', node.lineno


def _requested_accuracy(node: ast.expr) -> Iterator[Sign]:
    for element in getattr(node, "elts", ()):
        value = text_of(element)
        if value in ("acc", "accuracy"):
            yield f"{value}_asked", value, element.lineno


def key_of_old_logs(first_uses: dict[str, _Use]) -> _Use | None:
    """Return the key of a log that only Keras until 2.2 gave; None if there is none.

    It called `metrics=["accuracy"]` `acc`.

    Args:
      first_uses: the first use of each kind in a file. Those of logs are taken out.
    """
    acc, accuracy, as_acc, as_accuracy = (first_uses.pop(k, None) for k in _KINDS)
    is_of_keras = "keras" in first_uses and as_accuracy is not None
    return acc if is_of_keras and not (accuracy or as_acc) else None
