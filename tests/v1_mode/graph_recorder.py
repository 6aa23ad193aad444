"""A model in a v1 graph, its data, and a hook that notes what it gets."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
X = np.random.RandomState(0).rand(320, 4).astype("f")
Y = X @ np.ones([4, 1], "f")


def make_model(keras: Any, **compiled: Any) -> Any:
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Dense(4, activation="relu", name="hidden", input_shape=(4,)),
            layers.Dense(1, name="out"),
        ]
    )
    model.compile(**{"optimizer": "sgd", "loss": "mse", **compiled})
    return model


class Recorder(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Notes every call, and what it fetches."""

    def __init__(self, fetches: Any = None) -> None:
        self.fetches = fetches
        self.calls: list[str] = []
        self.results: list[Any] = []
        self.steps: list[int] = []

    def begin(self) -> None:
        self.calls.append("begin")
        self.graph = v1.get_default_graph()
        assert not self.graph.finalized
        self.step = v1.train.get_global_step()

    def after_create_session(self, session: Any, coord: Any) -> None:
        self.calls.append("after_create_session")
        self.session = session
        assert self.graph.finalized
        self.steps.append(int(session.run(self.step)))

    def before_run(self, run_context: Any) -> Any:
        self.calls.append("before_run")
        self.original_args = run_context.original_args
        return v1.train.SessionRunArgs(self.fetches)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.calls.append("after_run")
        self.results.append(run_values.results)
        self.steps.append(int(run_context.session.run(self.step)))

    def end(self, session: Any) -> None:
        self.calls.append("end")
        self.steps.append(int(session.run(self.step)))


def lifecycle(runs: int) -> list[str]:
    run = ["before_run", "after_run"] * runs
    return ["begin", "after_create_session", *run, "end"]
