"""Guests in `Model.fit` of every Keras of this process."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from hookbridge import patching
from hookbridge.adapters.guests import kinds
from hookbridge.run.joining.party import Party

_LOOPS = ("fit", "fit_generator")


def join(party: Party) -> None:
    """Guests join every `fit` from now on."""
    for owner in dict.fromkeys(owners()):
        loops = {
            name: _joined(party, vars(owner)[name])
            for name in _LOOPS
            if name in vars(owner)
        }
        methods = {"train_on_batch": _passed_by(party, owner.train_on_batch)}
        patching.InstanceMethods(owner, {**methods, **loops}).install()


def owners() -> Iterator[Any]:
    """The classes whose `fit` models inherit: the usual one and that of v1 graphs."""
    import tensorflow as tf

    if getattr(tf.keras, "__version__", "2").startswith("2"):
        with tf.Graph().as_default():
            yield _owner(tf.keras)
    yield _owner(tf.keras)


def _owner(keras: Any) -> Any:
    # Keras 2 gives a model's class its bases when a model is made: those for eager mode
    # or those for graphs. The model has a name because Keras numbers models without
    # one, and the program's models must keep their numbers.
    model = keras.Sequential(name="hookbridge")
    return next(c for c in type(model).__mro__ if "fit" in vars(c))


def _joined(party: Party, fit: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(fit)

    def joined(self: Any, *args: Any, **named: Any) -> Any:
        if party.is_inside:
            return fit(self, *args, **named)
        bound = signature.bind(self, *args, **named)
        given: Any = bound.arguments.get("callbacks")
        added = party.callbacks("Model.fit")
        if kinds.is_callback_list(given):
            for callback in added:
                given.append(callback)
        else:
            listed = [] if given is None else kinds.flatten(given)
            bound.arguments["callbacks"] = [*listed, *added]
        with party.inside():
            return fit(*bound.args, **bound.kwargs)

    return joined


def _passed_by(party: Party, method: Callable[..., Any]) -> Callable[..., Any]:
    def told(self: Any, *args: Any, **named: Any) -> Any:
        if not party.is_inside:
            party.pass_by(
                "Model.train_on_batch",
                "a loop of the program's own calls no callbacks; `Model.fit` does",
            )
        return method(self, *args, **named)

    return told
