"""Hooks that hold tensors of the user's own graph: refused before any step, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import hook_loops
import numpy as np
import pytest
import tensorflow as tf
from hook_fetching import hook_of

import hookbridge as hb
from hookbridge import errors

v1: Any = tf.compat.v1
train: Any = v1.train


class Holding(train.SessionRunHook):  # type: ignore[misc]
    """A user's hook that keeps what it was given, within containers."""

    def __init__(self, element: Any) -> None:
        self.fetches = {"all": [element]}


HOOKS = {
    "NanTensorHook": lambda t: train.NanTensorHook(t),
    "FinalOpsHook": lambda t: train.FinalOpsHook({"last": t}),
    "FinalOpsHook of an op": lambda t: train.FinalOpsHook(t.op),
    "LoggingTensorHook": lambda t: train.LoggingTensorHook({"x": t}, every_n_iter=1),
    "SummarySaverHook": lambda t: train.SummarySaverHook(
        save_steps=1, output_dir="unused", summary_op=t
    ),
    "Holding": Holding,
}


def counter() -> Any:
    return v1.get_variable("mine", [])


class Own(NamedTuple):
    x: Any


def referenced() -> Any:
    return v1.get_variable("mine", [], use_resource=False)


FETCHED: dict[str, Callable[[], Any]] = {
    "variable": counter,
    "reference variable": referenced,
    "assign_add": lambda: v1.assign_add(counter(), 1.0),
    "assign_add of a reference": lambda: v1.assign_add(referenced(), 1.0),
    "sparse": lambda: tf.sparse.from_dense(tf.eye(2)),
    "ragged": lambda: tf.RaggedTensor.from_row_splits(tf.ones([2]), [0, 1, 2]),
    "rows": lambda: tf.IndexedSlices(tf.ones([1]), tf.constant([0]), tf.constant([2])),
    "tuple": lambda: Own(tf.constant(1.0)),
}


@pytest.mark.parametrize("name", FETCHED)
def test_whatever_a_session_can_fetch_is_an_element(
    subtests: pytest.Subtests, name: str
) -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        element = FETCHED[name]()
        session.run(v1.global_variables_initializer())
        session.run(element)  # TensorFlow fetches it
    for hook in (Holding(element), train.FinalOpsHook(element)):
        with subtests.test(str(hook)):
            with pytest.raises(errors.RefusedError, match=r"holds .*in_begin"):
                hb.as_callbacks(hook)


@pytest.mark.parametrize("name", HOOKS)
def test_refused_by_name_with_the_way_out(subtests: pytest.Subtests, name: str) -> None:
    with tf.Graph().as_default():
        hook = HOOKS[name](tf.constant(1.0, name="mine"))
    for call in (hb.as_callbacks, hb.HookToCallback):
        with subtests.test(str(call)):
            with pytest.raises(errors.RefusedError, match=r"mine.*in_begin") as caught:
                call(hook)
            assert name.split()[0] in str(caught.value)
    (report,) = hb.explain(hook, host="fit").guests
    assert report.verdict == "refused" and "in_begin" in report.reason


def test_what_is_of_no_graph_is_no_element(keras2: Any) -> None:
    model = hook_loops.keras_model(keras2)
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        mirrored = tf.Variable(1.0)
    objects = [tf.Variable(1.0), mirrored, *model.weights, model, model.optimizer]
    more = [tf.constant(1.0), tf.sparse.eye(2), np.ones(3), "loss:0", 1, None, len]
    hb.as_callbacks([Holding(each) for each in (*objects, *more)])
    with pytest.raises(errors.RefusedError, match="`_loss_tensor` holds"):
        hb.as_callbacks(train.NanTensorHook(model.outputs[0]))  # Keras's symbolic one
    for eager in (tf.constant(1.0), tf.Variable(1.0), model.weights[0]):
        with pytest.raises(errors.RefusedError, match=r"holds .*in_begin"):
            hb.as_callbacks(train.FinalOpsHook({"last": eager}))
        with pytest.raises(errors.RefusedError, match="`_tensors` holds"):
            hb.as_callbacks(train.LoggingTensorHook({"x": eager}, every_n_iter=1))
    # What an earlier session left is no reason.
    hooks = [
        train.LoggingTensorHook(["loss:0"], every_n_iter=1),
        train.StepCounterHook(every_n_steps=1),
        train.StopAtStepHook(num_steps=2),
    ]
    assert hook_loops.in_session(hooks) == 2
    assert any(isinstance(v, tf.Tensor) for v in vars(hooks[1]).values())
    model.fit(
        hook_loops.X, hook_loops.Y, verbose=0, callbacks=hb.as_callbacks(hooks[:2])
    )


def test_what_begin_does_not_replace_is_refused_before_a_step(
    subtests: pytest.Subtests, keras2: Any
) -> None:
    runs: list[None] = []

    def use(self: Any) -> None:
        tf.add(self.fetches, 1.0, name="never")

    model = hook_loops.keras_model(keras2)
    for events in ({}, {"begin": use}):
        with subtests.test(str(events)):
            with tf.Graph().as_default() as graph:
                hook = hook_of(
                    "Late", before_run=lambda *_: runs.append(None), **events
                )
                hook.fetches = tf.constant(1.0, name="mine")
            graph.finalize()  # as a session loop leaves its graph
            message = r"`Late`.*`fetches` holds `mine:0`"
            with pytest.raises(errors.RefusedError, match=message):
                model.fit(
                    hook_loops.X,
                    hook_loops.Y,
                    verbose=0,
                    callbacks=hb.as_callbacks(hook),
                )
            assert not runs and int(model.optimizer.iterations) == 0


def test_a_model_of_a_graph_that_runs_eagerly_is_refused(keras2: Any) -> None:
    with tf.Graph().as_default():
        model = keras2.Sequential([keras2.layers.Dense(1, input_shape=(4,))])
        model.compile("sgd", "mse", run_eagerly=False)
    model.run_eagerly = True
    guests = hb.as_callbacks(Holding(None))
    with pytest.raises(errors.RefusedError, match=r"`Holding`.*runs eagerly"):
        model.fit(hook_loops.X, hook_loops.Y, verbose=0, callbacks=guests)
