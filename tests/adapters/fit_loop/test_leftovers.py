"""A `fit` with hooks leaves in memory only what `fit` without them leaves."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import hookbridge as hb


@pytest.fixture
def _no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def _living_iterators(keras: Any, callbacks: list[Any]) -> int:
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    x, y = np.zeros((32, 4), "f"), np.zeros((32, 2), "f")
    model.fit(x, y, batch_size=8, epochs=2, verbose=0, callbacks=callbacks)
    model.evaluate(x, y, batch_size=8, verbose=0, callbacks=callbacks)
    return sum(isinstance(each, tf.data.Iterator) for each in gc.get_objects())


@pytest.mark.slow
@pytest.mark.usefixtures("_no_collection")
def test_iterators_end_with_the_loop(keras: Any) -> None:
    native = _living_iterators(keras, [])
    hooks = [tf.compat.v1.train.LoggingTensorHook(["loss:0"], every_n_iter=1)]
    assert _living_iterators(keras, hb.as_callbacks(hooks)) == native
