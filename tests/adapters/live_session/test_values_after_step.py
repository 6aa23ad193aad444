"""What hooks read in `fit` is what the step had: variables and the global step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hook_fetching import Fetch, X, Y, sequential
from hook_hosts import tf_log

from hookbridge import errors
from hookbridge.adapters.hook_to_callback import HookToCallback

v1: Any = tf.compat.v1

train: Any = v1.train


def fit(model: Any, *hooks: Any, **kwargs: Any) -> Any:
    """One quiet epoch of four batches in their order."""
    arguments = {"batch_size": 8, "shuffle": False, "verbose": 0, **kwargs}
    return model.fit(X, Y, callbacks=[HookToCallback(h) for h in hooks], **arguments)


class Named(train.SessionRunHook):  # type: ignore[misc]
    """Fetches by names and nothing else."""

    def __init__(self, fetches: Any) -> None:
        self.fetches = fetches
        self.seen: list[Any] = []

    def before_run(self, run_context: Any) -> Any:
        return train.SessionRunArgs(self.fetches)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.seen.append(run_values.results)


@pytest.mark.parametrize("beside", [[], ["loss:0"]], ids=["alone", "beside the loss"])
def test_a_variable_s_own_name_is_its_value(keras: Any, beside: list[str]) -> None:
    model = sequential(keras)
    kernel = model.get_weights()[0]
    hook = Named(["global_step:0", "hidden/kernel:0", *beside])
    with tf_log() as lines:
        fit(model, hook, train.LoggingTensorHook(["global_step:0"], every_n_iter=1))
    assert [int(seen[0]) for seen in hook.seen] == [0, 1, 2, 3]
    np.testing.assert_array_equal(hook.seen[0][1], kernel)
    assert not np.array_equal(hook.seen[1][1], kernel)
    assert [line for line in lines if "global_step" in line] == [
        f"global_step:0 = {step}" for step in range(4)
    ]


def test_ops_on_what_a_variable_s_name_gives(keras: Any) -> None:
    class Twice(Named):
        def begin(self) -> None:
            step = v1.get_default_graph().get_tensor_by_name("global_step:0")
            self.fetches = 2 * step

    hook = Twice(None)
    fit(sequential(keras), hook)
    assert hook.seen == [0, 2, 4, 6]


def test_a_resource_is_refused_before_the_step(keras: Any) -> None:
    class Table(Named):
        def begin(self) -> None:
            keys, values = tf.constant([1]), tf.constant([2])
            pairs = tf.lookup.KeyValueTensorInitializer(keys, values)
            self.fetches = tf.lookup.StaticHashTable(pairs, 0).resource_handle

    model = sequential(keras)
    before = model.get_weights()
    with pytest.raises(errors.LiveSessionError, match="read from it"):
        fit(model, Table(None))
    for one, other in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_handle_of_a_variable_gives_its_value_too(keras: Any) -> None:
    class Handle(Fetch):
        def begin(self) -> None:
            super().begin()
            self.tensors = [v1.trainable_variables()[0].handle]

    model, hook = sequential(keras), Handle()
    kernel = model.get_weights()[0]
    fit(model, hook)
    np.testing.assert_array_equal(hook.seen[0][0], kernel)
