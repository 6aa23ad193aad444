"""Checkpoint, state and what callbacks set are of one moment in `fit` of a v1 graph."""

from __future__ import annotations

import functools
import gc
import importlib
import threading
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from moment_hosts import EPOCHS, LAST, LENGTH, Ending, Left, fit, left_by, setter
from moment_rows import ENDS, WITHIN, ending, expected

# The rows of `make test`: each way to end once, within an epoch or at its end.
SAMPLE = (0, 3, 4, 7, 8, 11, 12, 14, 15)
ENDINGS = [
    pytest.param(
        ending(*end, number),
        id=f"{end[0]}-{end[1]}",
        marks=[] if number in SAMPLE else [pytest.mark.exhaustive],
    )
    for number, end in enumerate(ENDS)
]


@functools.cache
def left_by_one_run(keras: str) -> Left:
    """What one undisturbed run leaves."""
    return left_by(importlib.import_module(keras), "graph", fit, [LAST])


def check(keras: Any, end: Ending) -> None:
    undisturbed = left_by_one_run(keras.__name__)
    assert (undisturbed.begins, undisturbed.ends) == (list(range(EPOCHS)), EPOCHS)
    left = left_by(keras, "graph", fit, [end, LAST])
    assert left == expected(undisturbed, "fit", end)


@pytest.mark.v1_mode("disable_v2_behavior")
@pytest.mark.parametrize("end", ENDINGS)
def test_a_run_that_ended_goes_on(keras2: Any, end: Ending) -> None:
    check(keras2, end)


@pytest.mark.v1_mode("disable_eager_execution")
def test_a_run_goes_on_in_the_second_mode(keras2: Any) -> None:
    check(keras2, ending("sigterm", WITHIN, 0))


def test_an_error_that_outlives_its_session(
    keras2: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who keeps the error of a `fit` and clears the session gets no further one."""
    unraisable: list[Any] = []
    monkeypatch.setattr("sys.unraisablehook", unraisable.append)
    ending = Ending("error", LENGTH + 2, 2)
    with pytest.raises(RuntimeError) as caught:
        fit(keras2, "graph", setter(keras2), str(tmp_path), ending)
    keras2.backend.clear_session()
    caught.value.__traceback__ = None
    del caught
    gc.collect()
    assert unraisable == []
    fit(keras2, "graph", setter(keras2), str(tmp_path), LAST)


def test_an_error_that_is_collected_while_an_op_is_made(
    keras2: Any, tmp_path: Path
) -> None:
    """TensorFlow has a lock then, for which a run of the session waits for ever."""
    ending = Ending("error", LENGTH + 2, 2)
    gc.disable()
    try:
        with pytest.raises(RuntimeError) as caught:
            fit(keras2, "graph", setter(keras2), str(tmp_path), ending)
        circle: list[Any] = [caught]
        circle.append(circle)
        del caught, circle
        graph = tf.compat.v1.get_default_graph()

        def collect() -> None:
            with graph._mutation_lock():  # as `Graph._create_op_internal`
                gc.collect()

        thread = threading.Thread(target=collect, daemon=True)
        thread.start()
        thread.join()
    finally:
        gc.enable()
