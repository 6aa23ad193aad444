"""A host in which a run of a scenario is a batch of `Model.fit`.

The model is like the graph of the scenarios: one weight `w` that starts at 0 and grows
by 1 in each batch, and a loss of `2 * w` or any function of the batch number.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from trace_events import Event
from trace_hosts import SessionHost
from trace_loop import Ops, T, Trace

import hookbridge as hb
from hookbridge.adapters.hook_to_callback import HookToCallback
from hookbridge.adapters.live_session.session import LiveSession

v1 = tf.compat.v1

# Events that only a loop has that calls `session.run` itself.
LOOP_EVENTS = {"CREATED", "RUN", "RAN", "LOOP_EXIT", "EXIT_OK", "AFTER", "CLOSE"}


def in_fit(log: list[Event]) -> list[Event]:
    """The events of a log that `fit` has too.

    What the loop itself fetches is left out: the train op in the recordings, loss and
    metrics in `fit`.
    """
    return [
        {key: value for key, value in event.items() if key != "fetches"}
        for event in log
        if event["e"] not in LOOP_EVENTS
    ]


class NotInFitError(Exception):
    """A scenario asks for something that `fit` does not have."""


class _Late(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Builds the scenario's ops in `begin`, where a graph exists under `fit`."""

    def __init__(self, builds: list[Callable[[], None]]) -> None:
        self._builds = builds

    def begin(self) -> None:
        for build in self._builds:
            build()


class FitTrace(Trace):
    """One run of one scenario in `Model.fit`, on a dataset or arrays."""

    def __init__(
        self,
        keras: Any,
        root: Path,
        *,
        session_class: type = LiveSession,  # what runs the hooks' own fetches
        optimizer: Any = None,
        train_op: str = "train_step",
        arrays: bool = False,
    ) -> None:
        super().__init__(_NoGraph(session_class), root)
        self._keras = keras
        self._optimizer = optimizer or keras.optimizers.SGD
        self._train_op = train_op
        self._arrays = arrays
        self._builds: list[Callable[[], None]] = []
        self._model: Any = None
        self._data: Any = None
        self._resumes = False

    def checkpoint(self, upto: int) -> str:
        """Trains `upto` steps; the scenario's `fit` goes on with that model."""
        directory = self.directory()
        self.train_graph()
        saver = v1.train.CheckpointSaverHook(directory, save_steps=1)
        callback = HookToCallback(saver)
        self._model.fit(_batches(upto), callbacks=[callback], verbose=0)
        self._resumes = True
        return directory

    def train_graph(
        self, *, increment: int = 1, loss: Callable[[Any], Any] | None = None
    ) -> Ops:
        if increment != 1:
            raise NotInFitError("A batch is one step.")
        if not self._resumes:
            self._model = self._compiled(loss)
        return Ops(self._train_op, "loss:0")

    def data_graph(self, count: int) -> tuple[Any, Any]:
        self._model = self._compiled(None)
        # The filter hides the size of the data: only reaching its end shows the end.
        self._data = _batches(count).filter(lambda *_: True)
        return None, self._train_op

    def _compiled(self, loss: Callable[[Any], Any] | None) -> Any:
        keras = self._keras
        dense = keras.layers.Dense(
            1, use_bias=False, kernel_initializer="zeros", name="w"
        )
        model = keras.Sequential([keras.Input([1]), dense], name="tiny")

        def batch_loss(batch: Any, w: Any) -> Any:
            if loss is None:
                return 2.0 * w[:, 0]
            step = tf.cast(tf.reshape(batch, [])[...], tf.int64)
            return tf.reshape(loss(step), [1]) + 0.0 * w[:, 0]

        # The gradient of the loss is 2: this adds 1 to the weight.
        model.compile(self._optimizer(-0.5), batch_loss)
        return model

    def late(self, build: Callable[[], T]) -> Callable[[], T]:
        built: list[T] = []
        self._builds.append(lambda: built.append(build()))
        return lambda: built[-1]

    def session(self, hooks: list[Any], **config: Any) -> Callable[[], Any]:
        every = config.get("save_checkpoint_steps")
        if every:
            directory = config["checkpoint_dir"]
            saver = v1.train.CheckpointSaverHook(directory, save_steps=every)
            hooks = [saver, *hooks]
        return lambda: hooks

    def drive(
        self,
        make: Callable[[], Any],
        fetch: Any,
        *,
        runs: int | None = None,
        **loop: Any,
    ) -> Any:
        if loop or fetch != self._train_op or runs == 0:
            raise NotInFitError("Only a loop of its own does that.")
        # A repeated run takes one more batch.
        data: Any = [_batches(30)]
        more: Any = {"steps_per_epoch": 20 if runs is None else runs}
        if self._data is not None:
            data, more = [self._data], {}
        elif self._arrays:
            count = more["steps_per_epoch"]
            data = np.ones([count, 1]), np.arange(count).reshape([count, 1])
            more = {"batch_size": 1, "shuffle": False}
        hooks = [_Late(self._builds), *make()] if self._builds else make()
        try:
            self.train(data, more, hooks)
        except BaseException as e:
            self.note("ESCAPED", **self.exception(e))

    def train(self, data: Any, more: dict[str, Any], hooks: list[Any]) -> None:
        """Trains on `data` with the hooks; `more` is for `fit`."""
        callbacks = [HookToCallback(hook) for hook in hooks]
        self._model.fit(*data, **more, callbacks=callbacks, verbose=0)


class OwnTrace(FitTrace):
    """One run of one scenario in a training loop of the user's own."""

    def exception(self, error: BaseException) -> Event:
        event = super().exception(error)
        if "function_node" in event["msg"]:  # TF 2.15 says no more of a function
            event["msg"] = f"Graph execution error: {event['msg']}"
        return event

    def train(self, data: Any, more: dict[str, Any], hooks: list[Any]) -> None:
        model, iterator = self._model, iter(data[0])
        train_step = tf.function(lambda batches: model.train_step(next(batches)))
        with hb.loops.OwnLoop(hooks, model=model) as loop:
            for _ in range(more.get("steps_per_epoch", 100)):
                loop.step(train_step, iterator)


def _batches(count: int) -> Any:
    """Batches of one sample whose label is the number of the batch."""
    ones = np.ones([count, 1, 1], "float32")
    return tf.data.Dataset.from_tensor_slices(
        (ones, np.arange(count).reshape([count, 1, 1]))
    )


class _NoGraph(SessionHost):
    """Under `fit` the graph is the live graph or the model's, and comes later."""

    def __init__(self, session_class: type) -> None:
        self.session_class = session_class

    def graph(self) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext()
