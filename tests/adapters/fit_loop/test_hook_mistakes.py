"""Mistakes of hooks: `fit` raises what the session loop raises, at the same point."""

from __future__ import annotations

from typing import Any

import hook_loops
import numpy as np
import pytest
import tensorflow as tf
from hook_fetching import Fetch

from hookbridge import errors
from hookbridge.adapters.hook_to_callback import HookToCallback

v1: Any = tf.compat.v1
train: Any = v1.train


class Mistaken(train.SessionRunHook):  # type: ignore[misc]
    """Makes a placeholder and one mistake."""

    def __init__(self, mistake: str) -> None:
        self.mistake = mistake
        self.eager = tf.constant(1.0) if mistake == "eager tensor" else None

    def begin(self) -> None:
        self.mine = v1.placeholder(tf.float32, [2], name="mine")
        self.total = tf.reduce_sum(self.mine)
        if self.mistake == "name in begin":
            v1.get_default_graph().get_tensor_by_name("nosuch:0")
        if self.mistake == "operation in begin":
            v1.get_default_graph().get_operation_by_name("nosuch")

    def after_create_session(self, session: Any, coord: Any) -> None:
        if self.mistake == "graph changed":
            tf.constant(1.0, name="late")

    def before_run(self, run_context: Any) -> Any:
        args = train.SessionRunArgs
        with tf.Graph().as_default():
            foreign = tf.constant(1.0, name="foreign")
        return {
            "name in before_run": lambda: args("nosuch:0"),
            "other graph": lambda: args(foreign),
            "eager tensor": lambda: args(self.eager),
            "fetch of what is no tensor": lambda: args(3),
            "feed of an unknown name": lambda: args(self.total, {"nosuch:0": 1}),
            "feed of another shape": lambda: args(self.total, {self.mine: [1, 2, 3]}),
            "feed of another dtype": lambda: args(self.total, {self.mine: ["a", "b"]}),
            "feed of what is no tensor": lambda: args(self.total, {object(): 1}),
            "feed of a tensor": lambda: args(self.total, {self.mine: self.mine}),
            "fed nothing": lambda: args(self.total),
            "not SessionRunArgs": lambda: self.total,
        }.get(self.mistake, lambda: None)()


MISTAKES: dict[str, Any] = {
    "name in begin": KeyError,
    "operation in begin": KeyError,
    "graph changed": RuntimeError,
    "name in before_run": ValueError,
    "other graph": ValueError,
    "fetch of what is no tensor": TypeError,
    "feed of an unknown name": TypeError,
    "feed of another shape": ValueError,
    "feed of another dtype": ValueError,
    "feed of what is no tensor": TypeError,
    "feed of a tensor": TypeError,
    "fed nothing": tf.errors.InvalidArgumentError,
    "not SessionRunArgs": AttributeError,
}

# Those that the session of `fit` finds, which names the hook.
WITH_HOOK = (
    "name in before_run",
    "other graph",
    "fetch of what is no tensor",
    *(mistake for mistake in MISTAKES if mistake.startswith("feed of")),
)


def test_same_exception_before_the_first_step(
    subtests: pytest.Subtests, keras2: Any
) -> None:
    model = hook_loops.keras_model(keras2)
    before = model.get_weights()
    for mistake, kind in MISTAKES.items():
        with subtests.test(str(mistake)):
            with pytest.raises(kind) as native:
                hook_loops.in_session([Mistaken(mistake)])
            with pytest.raises(kind) as bridged:
                hook_loops.in_fit(keras2, [Mistaken(mistake)], model=model)
            if mistake != "fed nothing":  # its text names the function
                theirs, ours = (
                    str(e.value).strip("'\"").replace("\\'", "'")[:34]
                    for e in (native, bridged)
                )
                assert ours == theirs, mistake
            if mistake in WITH_HOOK:
                assert isinstance(bridged.value, errors.HookBridgeError), mistake
                assert "`Mistaken` requested it in `before_run`" in str(bridged.value)
            np.testing.assert_array_equal(model.get_weights()[0], before[0])
    # A session of TensorFlow says that it is not of the graph.
    with pytest.raises(errors.RunArgumentsError, match="`Mistaken` requested it"):
        hook_loops.in_fit(keras2, [Mistaken("eager tensor")], model=model)
    # None is better than one that is half alike, such as `Const:0`.
    only = r"Nearest names: `loss:0`\. A"
    with pytest.raises(errors.UnknownTensorError, match=only):
        hook_loops.in_fit(keras2, [Fetch("acuracy:0")], model=model)
    with pytest.raises(errors.UnknownTensorError, match="`hidden/Relu:0`"):
        hook_loops.in_fit(keras2, [Fetch("hiden/Relu:0")], model=model)


class Feeding(train.SessionRunHook):  # type: ignore[misc]
    def __init__(self, rate: Any) -> None:
        self.rate = rate

    def before_run(self, run_context: Any) -> Any:
        return train.SessionRunArgs(None, {"learning_rate:0": self.rate})


def test_feeds_that_clash_or_are_none(keras: Any) -> None:
    """Both are refused before the first step, with the hook and the way out."""
    model = hook_loops.keras_model(keras)
    before = model.get_weights()
    words = "fed by two hooks.*Hooks that feed: `Feeding`, `Feeding`.*Leave one"
    with pytest.raises(errors.LiveSessionError, match=words):
        hook_loops.in_fit(keras, [Feeding(0.1), Feeding(0.2)], model=model)
    words = (
        "feed of `learning_rate:0` is None.*Leave the entry out.*`Feeding` requested"
    )
    with pytest.raises(errors.RunArgumentsError, match=words):
        hook_loops.in_fit(keras, [Feeding(None)], model=model)
    np.testing.assert_array_equal(model.get_weights()[0], before[0])


@pytest.mark.parametrize(
    "returned",
    ["loss:0", ["loss:0"], 3, train.SessionRunArgs("loss:0", [1])],
)
def test_before_run_returns_no_arguments(keras2: Any, returned: Any) -> None:
    """The error names the hook, before the first step."""

    class Returning(train.SessionRunHook):  # type: ignore[misc]
        def before_run(self, run_context: Any) -> Any:
            return returned

    model = hook_loops.keras_model(keras2)
    before = model.get_weights()
    with pytest.raises(errors.RunArgumentsError, match="`Returning` returned"):
        hook_loops.in_fit(keras2, [Returning()], model=model)
    np.testing.assert_array_equal(model.get_weights()[0], before[0])


def test_what_is_no_hook() -> None:
    items: list[Any] = [3, "hook", train.StopAtStepHook, print]
    for item in items:
        with pytest.raises(errors.NotAGuestError, match="expected"):
            HookToCallback(item)


def test_global_step_waiter_is_refused_where_it_would_hang(keras2: Any) -> None:
    with pytest.raises(errors.RefusedError, match=r"GlobalStepWaiterHook.*for ever"):
        hook_loops.in_fit(keras2, [train.GlobalStepWaiterHook(wait_until_step=5)])
