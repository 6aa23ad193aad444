"""Bad input to every public entry point: the error, its words, and no step before it.

Errors name what they received. Those of clusters are in
`tests/loops/test_bad_cluster_calls.py`, of rows in `tests/data_rows/test_bad_data.py`,
of commands in `tests/cli/test_bad_files.py`, and of a session's options in
`tests/adapters/session_loop/test_bad_options.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import tensorflow as tf
from bad_calls import call, keras2, model
from ramps import session_ramp

import hookbridge as hb
from hookbridge.jobs.loops import ClusterConfig, LocalCluster

v1 = tf.compat.v1
INVALID = hb.errors.InvalidArgumentError


class NoRepr:
    """An object whose `__repr__` fails."""

    def __repr__(self) -> str:
        raise ValueError("no text")


class FailingAttributes:
    """An object that fails when it is asked for a method."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("no attributes")


def checkpoint(folder: Path) -> Path:
    """A checkpoint with a truncated index."""
    path = folder / "model.ckpt"
    tf.train.Checkpoint(x=tf.Variable(1.0)).write(str(path))
    index = path.with_suffix(".ckpt.index")
    index.write_bytes(index.read_bytes()[:10])
    return path


def compiled() -> Any:
    made = model()
    made.compile("sgd", "mse")
    return made


def whole_checkpoint(folder: Path) -> str:
    return str(tf.train.Checkpoint(x=tf.Variable(1.0)).write(str(folder / "whole")))


def misnamed(folder: Path) -> Any:
    return restore(model(), whole_checkpoint(folder), names={"dense/kernal": "x"})


def itself() -> Any:
    guests: list[Any] = []
    guests.append([guests])
    return guests


def pipeline(*, batch_size: Any = 2, **options: Any) -> Any:
    rows = hb.data.Rows(__file__)
    return hb.data.Pipeline(rows, print, batch_size=batch_size, **options)


def own_loop_of_none(guests: Any, **options: Any) -> Any:
    return hb.loops.OwnLoop(guests, model=cast("Any", None), **options)


def own_steps(step: Any, *args: Any, logs: Any = None) -> None:
    """Two steps of a loop of the user's own; no callback sees one."""
    seen: list[int] = []
    counter = keras2().callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: seen.append(batch)
    )
    try:
        with hb.loops.OwnLoop([counter], model=model()) as loop:
            loop.step(step, *args, logs=logs)
    finally:
        assert seen == []


def own_evaluation(data: Any) -> None:
    with hb.loops.OwnLoop([], model=model()) as loop:
        loop.evaluate(lambda batch: batch, data)


def restored_unbuilt(folder: Path) -> None:
    with hb.recording(folder / "run", {"w": [0.0]}) as recording:
        recording.step(loss=1.0, weights={"w": [1.0]})
    unbuilt = keras2().Sequential([keras2().layers.Dense(1)])
    hb.replay(folder / "run").restore(unbuilt)


def saver_hook(**options: Any) -> Callable[[Path], Any]:
    return lambda folder: hb.checkpoints.BackgroundSaverHook(
        str(folder), save_steps=1, **options
    )


def untrained(guest: Any) -> None:
    """A session that makes no step."""
    seen: list[int] = []
    counter = keras2().callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: seen.append(batch)
    )
    try:
        session_ramp([guest, counter])
    finally:
        assert seen == []


def recording_step(**options: Any) -> Callable[[Path], Any]:
    """A step of the recording of a port with one weight."""

    def refused(folder: Path) -> None:
        step = {"loss": 1.0, "weights": {"w": [1.0, 2.0]}, **options}
        with hb.recording(folder / "port", {"w": [0.0, 1.0]}) as recording:
            recording.step(**step)

    return refused


restore: Any = hb.checkpoints.restore
CALLS: dict[str, Callable[[Path], Any]] = {
    **{
        rf"`{name}` is the function .*\(\)`; expected .*called as `{name}\(": call(
            function, lambda: None
        )
        for name, function in {
            "stop_fn": hb.callbacks.EarlyStopper,
            "schedule": hb.callbacks.LearningRateScheduler,
            "process_fn": hb.callbacks.PredictionOutputsProcessor,
            "summaries_fn": hb.callbacks.SummaryWriter,
        }.items()
    },
    **{
        f"`max_megabytes={value!r}`; expected a finite number": call(
            hb.recorder, "never", max_megabytes=value
        )
        for value in (0, "x", math.inf)
    },
    r"weights\['w'\] of type `str`; expected a number, a": call(
        hb.recording, "never", {"w": "text"}
    ),
    r"weights in which 'w' is missing; it was of shape \[2\]": recording_step(
        weights={"v": [0.0, 1.0]}
    ),
    r"weights in which 'w' is of shape \[1\]; it was": recording_step(
        weights={"w": [0.0]}
    ),
    "is not built, so it has no weights yet. Call it": restored_unbuilt,
    "checkpoint_basename='a/b'; expected a name without a folder": saver_hook(
        checkpoint_basename="a/b"
    ),
    **{
        f"Received `{name}={value!r}`.*; expected": call(
            hb.checkpoints.BackgroundSaverHook,
            **{"checkpoint_dir": "never", **every, name: value},
        )
        for name, value, every in (
            ("save_steps", -1, {}),
            ("save_steps", 0, {}),
            ("save_steps", "3", {}),
            ("save_secs", -1, {}),
            ("save_secs", "3", {}),
            ("checkpoint_dir", None, {"save_steps": 3}),
            ("checkpoint_dir", 3, {"save_steps": 3}),
        )
    },
    "loss='x'; expected a real number": recording_step(loss="x"),
    "loss=1j; expected a real number": recording_step(loss=1j),
    r"loss=\[\]; expected a.* that is not empty": recording_step(loss=[]),
    "optimizer='Adam'`; expected a dict": call(
        hb.recording, "never", {"w": [1.0]}, optimizer="Adam"
    ),
    r"optimizer\['rate'\]=\[1j\]`; expected a number": call(
        hb.recording, "never", {"w": [1.0]}, optimizer={"rate": [1j]}
    ),
    "learning_rate='x'; expected a real number": recording_step(learning_rate="x"),
    "checkpoint=None; exp": lambda _: restore(model(), None),
    "no checkpoint at": lambda _: restore(model(), "/no"),
    r"The checkpoint .*model\.ckpt cannot be read; expected": lambda folder: restore(
        model(), str(checkpoint(folder))
    ),
    "has `dense/kernal`, which is not a variable .*nearest: `dense.*/kernel`": misnamed,
    r"`names=\['x'\]`; expected": lambda folder: restore(
        model(), whole_checkpoint(folder), names=["x"]
    ),
    "model=None; expected a built Keras model": lambda folder: restore(
        None, whole_checkpoint(folder)
    ),
    "`last_step='5'`; expected an integer": call(hb.callbacks.Progress, last_step="5"),
    "`clock=5`; expected a function .* without arguments": call(
        hb.callbacks.Progress, clock=5
    ),
    "optimizer='adam'; expected the optimizer that": lambda _: hb.loops.OwnLoop(
        [], model=model(), optimizer="adam"
    ),
    "`step=5`; expected a function": lambda _: own_steps(5),
    r"`logs` is the function .*; expected .* as `logs\(returned\)`": lambda _: (
        own_steps(lambda a: a, tf.constant(1.0), logs=lambda: None)
    ),
    "The function given as `logs` returned None; expected a map": lambda _: own_steps(
        lambda a: a, tf.constant(1.0), logs=lambda returned: None
    ),
    "`data=5` of type `int`; expected the batches": lambda _: own_evaluation(5),
    "`saver=3` of type `int`; expected a `tf.compat.v1.train.Saver`": saver_hook(
        saver=3
    ),
    "`scaffold=3` of type `int`; expected a `Scaffold`": saver_hook(scaffold=3),
    "`listeners=3` of type `int`; expected a list": saver_hook(listeners=3),
    "`listeners=3` of type `int`; expected `CheckpointSaverL": saver_hook(
        listeners=[3]
    ),
    "`checkpoint_basename=None` of type `NoneType`; expected": saver_hook(
        checkpoint_basename=None
    ),
    "`summaries_fn` of `SummaryWriter` returned 'x' for 'a'; exp": lambda folder: (
        compiled().evaluate(
            tf.ones([4, 2]),
            tf.ones([4, 1]),
            verbose=0,
            callbacks=[hb.callbacks.SummaryWriter(lambda m: {"a": "x"}, str(folder))],
        )
    ),
    r"`step` is the function .*\(a, b\)`; expected": lambda _: own_steps(
        lambda a, b: a, tf.constant(1.0)
    ),
    "names 2 parts, .* and the step returned 1; expected a name for": lambda _: (
        own_steps(lambda a: a, tf.constant(1.0), logs=["loss", "accuracy"])
    ),
    "whose scheme `ftp://` TensorFlow does not know; expected a folder": call(
        hb.callbacks.ModelUploader, "ftp://host/model"
    ),
    r"logs\['loss'\] is None; expected a tensor": lambda _: hb.as_hooks(
        [], logs={"loss": None}
    ),
    "returned '0.1' for step 0; expected a number": lambda _: session_ramp(
        [hb.callbacks.LearningRateScheduler(cast("Any", lambda step: "0.1"))]
    ),
    **{
        rf"`{name}=None`; expected an integer of at least \d\.": call(
            function, *arguments, **{name: None}
        )
        for name, function, *arguments in (
            ("batch_size", pipeline),
            ("shuffle_buffer", pipeline),
            ("header_lines", hb.data.Rows, __file__),
            ("retries", hb.callbacks.ModelUploader, "x"),
            ("initial_epoch", own_loop_of_none, []),
            ("num_ps", LocalCluster),
        )
    },
    "stop_fn=3`; expected a function": call(hb.callbacks.EarlyStopper, 3),
    "only one of `model_fn` and `serving_input_fn`": call(
        hb.callbacks.SavedModelExporter, model_fn=print
    ),
    "`retries=-1`": call(hb.callbacks.ModelUploader, "x", retries=-1),
    "batch_size=0`; expected": call(hb.callbacks.Progress, batch_size=0),
    "last_step=0`; expected": call(hb.callbacks.Progress, last_step=0),
    "has no `path`": lambda _: untrained(
        hb.callbacks.SavedModelExporter(model_fn=print, serving_input_fn=dict)
    ),
    r"`ModelUploader` has no `path`": lambda _: untrained(
        hb.callbacks.ModelUploader("x")
    ),
    "arguments epoch, lr; expected one that is called with the step": call(
        hb.callbacks.LearningRateScheduler, lambda epoch, lr=0.1: lr
    ),
    "returned None for step": lambda _: session_ramp(
        [hb.callbacks.LearningRateScheduler(cast("Any", lambda step: None))]
    ),
    "`verbose='loud'`; expected an integer of at least 0": lambda _: hb.loops.OwnLoop(
        [],
        model=model(),
        verbose="loud",  # type: ignore[arg-type]
    ),
    r"`make` is the function .*\(graph\)`; expected .* without arguments": call(
        hb.in_begin, lambda graph: None
    ),
    "`remote_url=5` of type `int`; expected a folder or a URL": call(
        hb.callbacks.ModelUploader, 5
    ),
    "`path=5` of type `int`; expected a path": call(hb.callbacks.SavedModelExporter, 5),
}
NO_GUESTS: dict[str, Callable[[Path], Any]] = {
    r"a list that contains itself, at \[0\]\[0\]": lambda _: hb.as_hooks(itself()),
    "list that contains itself": lambda _: hb.explain(itself()),
    "of type `FailingAttributes`; expected": call(hb.as_hooks, [FailingAttributes()]),
}
NAMELESS = NoRepr()
OF_NAMELESS = [
    call(hb.set_role, v1.train.StopAtStepHook(last_step=1), NAMELESS),
    call(hb.explain, [], NAMELESS),
    call(ClusterConfig, NAMELESS),
    call(hb.in_begin, NAMELESS),
    call(hb.replicate_model_fn, NAMELESS),
    call(hb.TowerOptimizer, NAMELESS),
    call(hb.loops.session_config, NAMELESS),
    call(hb.callbacks.EarlyStopper, NAMELESS),
]


@pytest.mark.parametrize("words", CALLS)
def test_a_call_is_refused(words: str, tmp_path: Path) -> None:
    with pytest.raises(INVALID, match=words):
        CALLS[words](tmp_path)


@pytest.mark.parametrize("refused", OF_NAMELESS)
def test_an_object_without_a_text_is_refused(refused: Any, tmp_path: Path) -> None:
    with pytest.raises(INVALID, match=r"<NoRepr instance at .*expected"):
        refused(tmp_path)


@pytest.mark.parametrize(
    "state",
    [b"no proto {", b"\xff\xfe\0", b"", b'model_checkpoint_path: "model.ckpt-7"'],
)
def test_a_damaged_file_of_checkpoints_is_named(state: bytes, tmp_path: Path) -> None:
    (tmp_path / "checkpoint").write_bytes(state)
    words = r"/checkpoint is damaged: .*Expected .*`model_checkpoint_path: "
    with pytest.raises(INVALID, match=words):
        restore(model(), str(tmp_path))


@pytest.mark.parametrize("words", NO_GUESTS)
def test_what_is_no_guest_is_refused(words: str, tmp_path: Path) -> None:
    with pytest.raises(hb.errors.NotAGuestError, match=words):
        NO_GUESTS[words](tmp_path)


def test_a_guest_without_a_text_is_named_by_its_class() -> None:
    words = "Received <NoRepr instance at .*> of type `NoRepr`; expected"
    convert: tuple[Any, ...] = (hb.as_hooks, hb.as_callbacks, hb.explain)
    for function in convert:
        with pytest.raises(hb.errors.NotAGuestError, match=words):
            function([NAMELESS])
