"""Guests in `Model.fit` of every Keras of this process."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from hookbridge.adapters.guests import kinds
from hookbridge.ground import patching
from hookbridge.old_programs.run.joining.joiner import Joiner

_LOOPS = ("fit", "fit_generator")


def join(joiner: Joiner) -> None:
    """Let guests join every `fit` from now on."""
    joined = functools.partial(_call_with_guests, joiner)
    reported = functools.partial(_call_and_report, joiner)
    for owner in dict.fromkeys(owners()):
        loops = {name: joined for name in _LOOPS if name in vars(owner)}
        patching.wrap(owner, train_on_batch=reported, **loops)


def owners() -> Iterator[Any]:
    """Yield the classes whose `fit` models inherit: usual, and of v1 graphs."""
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


def _call_with_guests(
    joiner: Joiner, fit: Callable[..., Any], self: Any, /, *args: Any, **named: Any
) -> Any:
    """Call a loop with the guests after the callbacks that its caller gives."""
    if joiner.is_inside:
        return fit(self, *args, **named)
    bound = inspect.signature(fit).bind(self, *args, **named)
    callbacks: Any = bound.arguments.get("callbacks")
    added = joiner.callbacks()
    if kinds.is_callback_list(callbacks):
        for callback in added:
            callbacks.append(callback)
    else:
        listed = [] if callbacks is None else kinds.flatten(callbacks)
        bound.arguments["callbacks"] = [*listed, *added]
    with joiner.inside():
        return fit(*bound.args, **bound.kwargs)


def _call_and_report(
    joiner: Joiner, method: Callable[..., Any], /, *args: Any, **named: Any
) -> Any:
    """Call a method, which no guest joins."""
    if not joiner.is_inside:
        joiner.note_unjoined(
            "Model.train_on_batch",
            "a loop of the program's own calls no callbacks; `Model.fit` does",
        )
    return method(*args, **named)
