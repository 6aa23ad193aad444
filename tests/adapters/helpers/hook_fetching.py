"""A hook that fetches by name, and models to fit with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

import hookbridge as hb
from hookbridge.adapters.hook_to_callback import HookToCallback

v1: Any = tf.compat.v1
train: Any = v1.train


class Fetch(train.SessionRunHook):  # type: ignore[misc]
    """Fetches tensors by name and the global step with each step."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def begin(self) -> None:
        graph = v1.get_default_graph()
        self.tensors = [graph.get_tensor_by_name(name) for name in self.names]
        self.step = train.get_global_step()
        self.seen: list[list[Any]] = []
        self.steps: list[int] = []
        self.ended = False

    def before_run(self, run_context: Any) -> Any:
        return train.SessionRunArgs([self.step, self.tensors])

    def after_run(self, run_context: Any, run_values: Any) -> None:
        step, values = run_values.results
        self.steps.append(int(step))
        self.seen.append(values)

    def end(self, session: Any) -> None:
        self.ended = True
        self.last_step = int(session.run(self.step))


def hook_of(name: str = "Functions", **events: Any) -> Any:
    """A hook of functions: `hook_of(after_run=lambda self, context, values: 1)`."""
    return type(name, (train.SessionRunHook,), events)()


def rate_hook(name: str = "learning_rate:0", feed: float | None = None) -> Any:
    """Fetches the rate of this name in each step, and feeds it."""
    arguments = train.SessionRunArgs(name, None if feed is None else {name: feed})
    hook = hook_of(
        before_run=lambda self, context: arguments,
        after_run=lambda self, context, values: self.seen.append(float(values.results)),
    )
    hook.seen = []
    return hook


def run_loop(
    model: Any, *guests: Any, loop: str = "fit", data: Any = None, **options: Any
) -> Any:
    """Calls `fit`, or another loop of a model, with guests, in order and silently."""
    data = (X, Y) if data is None else data
    options = {"batch_size": 8, "verbose": 0, **options}
    if loop == "fit":
        options.setdefault("shuffle", False)
    arguments = data[:1] if loop == "predict" else data
    return getattr(model, loop)(
        *arguments, callbacks=hb.as_callbacks(guests), **options
    )


def fit_both(
    make: Any, x: Any, y: Any, *names: str, **kwargs: Any
) -> tuple[Fetch, Any, Any]:
    """Fits a model with a fetching hook and an equal one without; both must agree."""
    hook = Fetch(*names)
    arguments = {"epochs": 2, "batch_size": 8, "shuffle": False, "verbose": 0, **kwargs}
    bare, hooked = make(), make()
    hooked.set_weights(bare.get_weights())
    expected = bare.fit(x, y, **arguments).history
    found = hooked.fit(x, y, callbacks=[HookToCallback(hook)], **arguments).history
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        np.testing.assert_allclose(found[key], values, rtol=1e-3, atol=1e-5)
    for one, other in zip(hooked.get_weights(), bare.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)
    assert hook.ended
    return hook, hooked, found


RANDOM = np.random.RandomState(3)
X = RANDOM.rand(32, 4).astype("float32")
Y = X.sum(1, keepdims=True)


def sequential(keras: Any, **compile_args: Any) -> Any:
    model = keras.Sequential(
        [
            keras.Input((4,)),
            keras.layers.Dense(5, activation="relu", name="hidden"),
            keras.layers.Dense(1, name="out"),
        ]
    )
    model.compile(keras.optimizers.SGD(0.05), "mse", metrics=["mae"], **compile_args)
    return model


def with_step(keras: Any, step: Any, *compile_args: Any, **options: Any) -> Any:
    """A linear subclassed model whose `train_step` is `step(model, x, y)`."""

    class Own(keras.Model):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.out = keras.layers.Dense(1, name="out")
            self.mean = keras.metrics.Mean(name="mean")

        def call(self, inputs: Any) -> Any:
            return self.out(inputs)

        def train_step(self, data: Any) -> Any:
            return step(self, *data)

    model = Own()
    model(X[:1])
    model.compile(*compile_args, **options)
    return model
