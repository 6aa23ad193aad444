"""What cannot be carried is refused before the first step, by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import begin, build, feeds, session_loop

import hookbridge as hb
from hookbridge import errors

ONE_KERAS = True


def test_epochs_missing(keras: Any) -> None:
    with pytest.raises(
        errors.EpochsUndefinedError,
        match=r"`CSVLogger` acts by epoch.*steps_per_epoch=",
    ):
        hb.as_hooks(keras.callbacks.CSVLogger("x.csv"))
    with pytest.raises(errors.EpochsUndefinedError, match="without `steps_per_epoch`"):
        hb.as_hooks(keras.callbacks.Callback(), epochs=3)


def test_epochs_missing_for_a_callback_of_evaluation_too(
    keras: Any, tmp_path: Path
) -> None:
    hooks = hb.as_hooks(keras.callbacks.TensorBoard(str(tmp_path)))  # for evaluate
    with tf.Graph().as_default():
        build()
        with pytest.raises(errors.EpochsUndefinedError, match="`TensorBoard`"):
            hooks[0].begin()


def test_batch_level_callbacks_need_no_epochs(keras: Any) -> None:
    with tf.Graph().as_default():
        net = build()
        hooks = hb.as_hooks(keras.callbacks.TerminateOnNaN())
        with tf.compat.v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            session.run(net.train_op, feeds(net, 0))


def test_unknown_tensor_name(keras: Any) -> None:
    with pytest.raises(
        errors.UnknownTensorError,
        match=r'logs\[\'acc\'\] names the tensor "maee:0".*"mae:0"',
    ):
        begin(keras.callbacks.History(), logs={"acc": "maee:0"})


def test_log_of_another_graph(keras: Any) -> None:
    with tf.Graph().as_default():
        stranger = tf.constant(1.0)
    with pytest.raises(errors.InvalidArgumentError, match=r"logs\['a'\]"):
        begin(keras.callbacks.History(), logs={"a": stranger})


def test_whole_model_of_a_bare_graph(keras: Any, tmp_path: Path) -> None:
    with pytest.raises(
        errors.RefusedError, match=r"`ModelCheckpoint`.*`save_weights_only=True`"
    ):
        hb.as_hooks(
            keras.callbacks.ModelCheckpoint(str(tmp_path / "m.keras")),
            steps_per_epoch=2,
        )


def test_keras3_model(keras: Any, keras3: Any) -> None:
    model = keras3.Sequential([keras3.layers.Input((2,)), keras3.layers.Dense(1)])
    for given in (model, lambda: model):
        with pytest.raises(errors.RefusedError, match=r"Keras 3 model.*`tf_keras`"):
            begin(keras.callbacks.History(), model=given)


def test_model_that_is_none(keras: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="`model` is 'net'"):
        begin(keras.callbacks.History(), model="net")


def test_model_of_another_graph(keras: Any, keras2: Any) -> None:
    with tf.Graph().as_default():
        model = keras2.Sequential([keras2.layers.Dense(1, input_shape=(2,))])
    with pytest.raises(errors.InvalidArgumentError, match="not in the graph"):
        begin(keras.callbacks.History(), model=model)


@pytest.mark.parametrize("place", ["/proc/no/such", "FILE/below"])
def test_unwritable(keras: Any, tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    place = place.replace("FILE", str(tmp_path / "file"))
    c = keras.callbacks
    for callback in (
        c.ModelCheckpoint(f"{place}/w{{epoch}}.weights.h5", save_weights_only=True),
        c.TensorBoard(f"{place}/logs"),
        c.CSVLogger(f"{place}/log.csv"),
        c.BackupAndRestore(f"{place}/backup"),
    ):
        with pytest.raises(errors.UnwritableError, match=type(callback).__name__):
            hb.as_hooks(callback, steps_per_epoch=2)


def test_paths_that_can_be_written_leave_nothing_behind(
    keras: Any, tmp_path: Path
) -> None:
    hb.as_hooks(
        [
            keras.callbacks.TensorBoard(str(tmp_path / "a" / "b")),
            keras.callbacks.CSVLogger(str(tmp_path / "log.csv")),
        ],
        steps_per_epoch=2,
    )
    assert list(tmp_path.iterdir()) == []


def test_learning_rate_that_is_not_there(keras: Any) -> None:
    scheduler = keras.callbacks.LearningRateScheduler(lambda epoch: 0.1)
    with tf.Graph().as_default():
        v = tf.compat.v1.get_variable("v", [])
        step = tf.compat.v1.train.get_or_create_global_step()
        tf.group(v.assign_sub(0.1 * v), step.assign_add(1), name="train")
        (hook,) = hb.as_hooks(scheduler, steps_per_epoch=2)
        with pytest.raises(errors.RefusedError, match=r"learning_rate=<tensor"):
            hook.begin()


def test_constant_learning_rate_that_cannot_be_fed(keras: Any) -> None:
    scheduler = keras.callbacks.LearningRateScheduler(lambda epoch: 0.1)
    with tf.Graph().as_default() as graph:
        build()
        rate = graph.get_tensor_by_name("GradientDescent/learning_rate:0")
        tf.get_static_value(rate)  # forbids feeding it
        (hook,) = hb.as_hooks(scheduler, steps_per_epoch=2)
        with pytest.raises(errors.RefusedError, match="placeholder_with_default"):
            hook.begin()


def test_two_optimizers_with_rates_of_their_own(keras: Any) -> None:
    scheduler = keras.callbacks.LearningRateScheduler(lambda epoch: 0.1)
    with tf.Graph().as_default():
        net = build()
        tf.compat.v1.train.AdamOptimizer(0.5).minimize(net.loss)
        (hook,) = hb.as_hooks(scheduler, steps_per_epoch=2)
        with pytest.raises(errors.RefusedError, match="GradientDescent/learning_rate"):
            hook.begin()
        (hook,) = hb.as_hooks(
            scheduler, steps_per_epoch=2, learning_rate="Adam/learning_rate"
        )
        hook.begin()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steps_per_epoch", 0),
        ("steps_per_epoch", 1.5),
        ("steps_per_epoch", float("nan")),
        ("steps_per_epoch", "many"),
        ("epochs", float("inf")),
        ("epochs", [1]),
        ("epochs", -1),
        ("epochs", True),
        ("logs", ["loss"]),
        ("params", 3),
        ("validation", 5),
        ("validation", ("a", "b")),
    ],
)
def test_bad_arguments(keras: Any, name: str, value: Any) -> None:
    options = {"steps_per_epoch": 2, name: value}
    with pytest.raises(errors.InvalidArgumentError, match=f"`{name}\\b"):
        hb.as_hooks(keras.callbacks.History(), **options)


def test_refused_callbacks_of_keras_3(keras: Any) -> None:
    if not keras.__version__.startswith("3"):
        assert not hasattr(keras.callbacks, "SwapEMAWeights")
        return
    with pytest.raises(errors.RefusedError, match=r"`SwapEMAWeights`.*ExponentialMov"):
        hb.as_hooks(keras.callbacks.SwapEMAWeights(), steps_per_epoch=2)


def test_refused_callbacks_of_keras_2(keras: Any) -> None:
    kind = getattr(
        getattr(keras.callbacks, "experimental", None), "UpdateEmbeddingCallback", None
    )
    if kind is None:
        assert keras.__version__.startswith(("2.15", "3"))
        return
    callback = kind.__new__(kind)
    with pytest.raises(errors.RefusedError, match="`UpdateEmbeddingCallback`"):
        hb.as_hooks(callback, steps_per_epoch=2)


def test_model_says_what_it_offers(keras: Any) -> None:
    seen: list[str] = []

    class Asks(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_begin(self, logs: Any = None) -> None:
            for name in ("loss_tracker", "compile", "save", "predict"):
                with pytest.raises(AttributeError) as caught:
                    value = getattr(self.model, name)
                    value("path")
                assert isinstance(caught.value, errors.LiveModelError)
                seen.append(str(caught.value))
            with pytest.raises(AttributeError, match="hookbridge"):
                _ = self.model.optimizer.momentum
            with pytest.raises(AttributeError, match="validation="):
                self.model.evaluate()
            assert not hasattr(self.model, "inner_model")

    session_loop([Asks()], validate=False, epochs=1)
    assert len(seen) == 4
    assert all("hookbridge" in text and "model=" in text for text in seen)


def test_set_weights_of_a_wrong_shape(keras: Any) -> None:
    class Sets(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_begin(self, logs: Any = None) -> None:
            with pytest.raises(errors.InvalidArgumentError, match="expected 2: dense"):
                self.model.set_weights([np.zeros((2, 1))])
            with pytest.raises(errors.InvalidArgumentError, match=r"expected \(2, 1\)"):
                self.model.set_weights([np.zeros((3, 1)), np.zeros(1)])

    session_loop([Sets()], validate=False, epochs=1)
