"""The options of stock callbacks do in a session what they do in `Model.fit`."""

from __future__ import annotations

import collections
import functools
import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import STEPS, fit, session_loop, until_stop

import hookbridge as hb
from hookbridge import errors

ONE_KERAS = True

v1 = tf.compat.v1


def events(folder: Path) -> dict[str, list[Any]]:
    """`{tag: [(step, value)]}` of all event files under a folder."""
    found: dict[str, list[Any]] = collections.defaultdict(list)
    for file in sorted(folder.rglob("events.out.tfevents.*")):
        prefix = file.parent.relative_to(folder)
        for event in v1.train.summary_iterator(str(file)):
            if event.HasField("graph_def"):
                found[f"{prefix}:graph"].append((0, None))
            for value in event.summary.value:
                array = tf.make_ndarray(value.tensor)
                is_number = array.shape == () and array.dtype.kind == "f"
                point = event.step, float(array) if is_number else None
                found[f"{prefix}:{value.tag}"].append(point)
    return found


def test_progress_bars(
    keras: Any, keras2: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Numbers of the history; without epochs; samples and lines of Keras 2."""
    history = session_loop([keras.callbacks.ProgbarLogger()], epochs=2).history
    out = capsys.readouterr().out
    assert all(text in out for text in ("Epoch 1/2", "Epoch 2/2", "3/3", "val_loss"))
    for key, values in history.items():
        for value in values:
            assert f" - {key}: {value:.4f}" in out
    session_loop([keras.callbacks.ProgbarLogger()], epochs=None, max_steps=4)
    assert "3/3" in capsys.readouterr().out
    bar = keras2.callbacks.ProgbarLogger
    session_loop([bar("samples")], epochs=1, params={"samples": 12})
    assert "12/12" in capsys.readouterr().out
    session_loop([bar("steps", stateful_metrics=["mae"])], params={"verbose": 2})
    lines = [x for x in capsys.readouterr().out.splitlines() if x.startswith("3/3 - ")]
    assert len(lines) == 4
    assert all(" val_mae: " in line for line in lines)


@pytest.mark.slow
def test_tensorboard_options(
    subtests: pytest.Subtests, keras: Any, tmp_path: Path
) -> None:
    """Images of weights, steps per second, embeddings; each as often as in `fit`."""
    found: dict[str, Any] = {}
    scalars: dict[str, Any] = {}
    for name, run in (
        ("fit", functools.partial(fit, keras)),
        ("session", session_loop),
    ):
        # With `write_graph=False` Keras expects the folder to exist.
        (tmp_path / name).mkdir()
        board = keras.callbacks.TensorBoard(
            str(tmp_path / name),
            histogram_freq=2,
            write_images=True,
            write_graph=False,
            update_freq="batch",
            write_steps_per_second=True,
            embeddings_freq=2,
        )
        run([board], epochs=4)
        written = events(tmp_path / name).items()
        tags = {
            # Keras 3 puts the name of its model before the layer's.
            re.sub(r"sequential(_1)?/", "", tag): len(points)
            for tag, points in written
            if "keras" not in tag and "graph" not in tag
        }
        files = [p.name for p in (tmp_path / name).rglob("keras_embedding*")]
        scalars[name] = {
            tag: points
            for tag, points in written
            if re.search("epoch_|evaluation_|batch_", tag)
            and "steps_per_second" not in tag
        }
        found[name] = tags, sorted(f.split(".weights")[0] for f in files)
    ours, theirs = found["session"], found["fit"]
    for part in ("image", "histogram", "steps_per_second"):
        with subtests.test(str(part)):
            assert any(part in tag for tag in ours[0]), part
    assert ours == theirs
    assert ours[1]
    assert scalars["session"].keys() == scalars["fit"].keys()
    for tag, points in scalars["fit"].items():
        drawn = scalars["session"][tag]
        np.testing.assert_allclose(drawn, points, rtol=2e-5, err_msg=tag)


def test_tensorboard_embeddings_of_a_keras_graph(
    keras: Any, keras2: Any, tmp_path: Path
) -> None:
    layers = keras2.layers
    with tf.Graph().as_default():
        step = v1.train.get_or_create_global_step()
        words = layers.Embedding(5, 3, input_length=2, name="words")
        model = keras2.Sequential([words, layers.Flatten(), layers.Dense(1)])
        loss = tf.reduce_mean(tf.square(model(tf.constant([[0, 1]]))), name="loss")
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        board = keras.callbacks.TensorBoard(
            str(tmp_path), embeddings_freq=1, embeddings_metadata="words.tsv"
        )
        options: dict[str, Any] = {"steps_per_epoch": 2, "epochs": 2, "model": model}
        if keras is not keras2:  # it knows only its own layers
            with pytest.raises(errors.RefusedError, match="`tf_keras"):
                hb.as_hooks(board, **options)
            return
        until_stop(hb.as_hooks(board, **options), train_op)
    assert '"words.tsv"' in (tmp_path / "projector_config.pbtxt").read_text()
    for epoch in range(2):
        assert list((tmp_path / "train").glob(f"keras_embedding.ckpt-{epoch}.*"))


def test_tensorboard_writes_graph_profile_and_rate(keras: Any, tmp_path: Path) -> None:
    """Keras 2 writes the rate for a `LearningRateSchedule` only, Keras 3 always."""

    def rate() -> Any:
        step = v1.train.get_or_create_global_step()
        return v1.train.exponential_decay(0.1, step, STEPS, 0.5)

    # Keras 2 writes the graph in `on_train_batch_end`. Only options such as the first
    # one make it call that, in `fit` too.
    board = keras.callbacks.TensorBoard(
        str(tmp_path), write_steps_per_second=True, profile_batch=(2, 4)
    )
    session_loop([board], rate=rate, epochs=3)
    written = events(tmp_path)
    assert any(tag.endswith(":graph") for tag in written)
    points = written["train:epoch_learning_rate"]
    assert [p[1] for p in points] == pytest.approx([0.05, 0.025, 0.0125])
    assert list(tmp_path.rglob("*.xplane.pb"))


def test_tensorboard_made_inside_the_graph(
    keras2: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It profiles too: the second batch unless another is named, as in `fit`."""
    warnings: list[str] = []
    monkeypatch.setattr(tf.get_logger(), "warning", lambda m, *_: warnings.append(m))

    class Own(keras2.callbacks.TensorBoard):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            super().on_epoch_end(epoch, {**logs, "mine": epoch})

    make = functools.partial(Own, histogram_freq=1, write_graph=False, profile_batch=0)
    stock, inside, outside = (tmp_path / n for n in ("stock", "inside", "outside"))
    with tf.Graph().as_default():
        board = keras2.callbacks.TensorBoard(str(stock), write_grads=True)
        guests = [board, make(str(inside))]
    session_loop(guests)
    session_loop([make(str(outside))])
    assert any("`write_grads` will be ignored" in text for text in warnings)
    assert "train:epoch_loss" in events(stock)
    assert list(stock.rglob("*.xplane.pb"))
    found, expected = events(inside), events(outside)
    assert "train:epoch_mine" in found and set(found) == set(expected)
    assert found["train:epoch_loss"] == expected["train:epoch_loss"]


def test_tensorboard_without_its_package_says_so(
    keras: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    callback = keras.callbacks.TensorBoard(str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(errors.MissingExtraError, match=r"hookbridge\[tensorboard\]"):
        hb.as_hooks(callback, steps_per_epoch=2)
