"""The options of stock callbacks do in a session loop what they do in `Model.fit`."""

from __future__ import annotations

import inspect
import json
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from callback_loops import Loop, assert_same, fit, session_loop
from callback_recorder import EVENTS
from event_files import events
from monitor_server import monitor_server

import hookbridge as hb
from hookbridge import errors

v1 = tf.compat.v1
server = pytest.fixture(monitor_server, name="server")
Run = Callable[..., Loop]


def runs(keras: Any) -> dict[str, Run]:
    """`Model.fit` and the session loop, called in the same way."""

    def native(callbacks: Any, **options: Any) -> Loop:
        return fit(keras, callbacks, **options)

    return {"fit": native, "session": session_loop}


@pytest.mark.slow
def test_csv_logger_appends(keras: Any, tmp_path: Path) -> None:
    found = {}
    for name, run in runs(keras).items():
        path = str(tmp_path / name)
        for _ in range(2):
            run([keras.callbacks.CSVLogger(path, separator=";", append=True)], epochs=2)
        found[name] = [x.split(";") for x in Path(path).read_text().splitlines()]
    assert found["session"][0] == found["fit"][0]
    assert len(found["session"]) == 5
    for ours, theirs in zip(found["session"][1:], found["fit"][1:], strict=True):
        assert list(map(float, ours)) == pytest.approx(list(map(float, theirs)), 2e-5)


def test_terminate_on_nan_raises(keras: Any) -> None:
    kind = keras.callbacks.TerminateOnNaN
    if "raise_error" not in inspect.signature(kind).parameters:
        assert not keras.__version__.startswith("3.15")  # an option of newer Keras 3
        return
    with pytest.raises(RuntimeError, match="NaN or Inf loss encountered at batch"):
        session_loop([kind(raise_error=True)], rate=1e30)


def test_lambda_callback_of_every_event(keras: Any) -> None:
    seen: dict[str, list[Any]] = {}
    for name, run in runs(keras).items():
        log = seen[name] = []

        def note(event: str, log: list[Any] = log) -> Any:
            return lambda *a, **k: log.append(
                (event, [sorted(x) if isinstance(x, dict) else x for x in a], list(k))
            )

        given = {event: note(event) for event in EVENTS}
        run([keras.callbacks.LambdaCallback(**given)], epochs=2)
    assert [e[0] for e in seen["session"]] == [e[0] for e in seen["fit"]]
    assert {e[0] for e in seen["session"]} == set(EVENTS)
    if keras.__version__.startswith("2"):
        assert seen["session"] == seen["fit"]


def test_progress_bar_counts_samples_and_prints_lines(
    keras2: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    bar = keras2.callbacks.ProgbarLogger
    session_loop([bar("samples")], epochs=1, params={"samples": 12})
    assert "12/12" in capsys.readouterr().out
    session_loop([bar("steps", stateful_metrics=["mae"])], params={"verbose": 2})
    lines = [x for x in capsys.readouterr().out.splitlines() if x.startswith("3/3 - ")]
    assert len(lines) == 4
    assert all(" val_mae: " in line for line in lines)


def test_progress_bar_shows_the_numbers_of_the_history(
    keras: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    history = session_loop([keras.callbacks.ProgbarLogger()], epochs=2).history
    out = capsys.readouterr().out
    assert all(text in out for text in ("Epoch 1/2", "Epoch 2/2", "3/3", "val_loss"))
    for key, values in history.items():
        for value in values:
            assert f" - {key}: {value:.4f}" in out


@pytest.mark.slow
def test_tensorboard_options(keras: Any, tmp_path: Path) -> None:
    """Images of weights, steps per second, embeddings; each as often as in `fit`."""
    found = {}
    for name, run in runs(keras).items():
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
        tags = {
            # Keras 3 puts the name of its model before the layer's.
            tag.replace("sequential/", "").replace("sequential_1/", ""): len(points)
            for tag, points in events(tmp_path / name).items()
            if "keras" not in tag and "graph" not in tag
        }
        files = [p.name for p in (tmp_path / name).rglob("keras_embedding*")]
        found[name] = tags, sorted(f.split(".weights")[0] for f in files)
    ours, theirs = found["session"], found["fit"]
    for part in ("image", "histogram", "steps_per_second"):
        assert any(part in tag for tag in ours[0]), part
    assert ours == theirs
    assert ours[1]


def test_tensorboard_embeddings_of_a_keras_graph(
    keras: Any, keras2: Any, tmp_path: Path
) -> None:
    with tf.Graph().as_default():
        step = v1.train.get_or_create_global_step()
        model = keras2.Sequential(
            [
                keras2.layers.Embedding(5, 3, input_length=2, name="words"),
                keras2.layers.Flatten(),
                keras2.layers.Dense(1),
            ]
        )
        loss = tf.reduce_mean(tf.square(model(tf.constant([[0, 1]]))), name="loss")
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        board = keras.callbacks.TensorBoard(
            str(tmp_path), embeddings_freq=1, embeddings_metadata="words.tsv"
        )
        if keras.__version__.startswith("3"):  # it knows only its own layers
            with pytest.raises(errors.RefusedError, match="`tf_keras"):
                hb.as_hooks(board, steps_per_epoch=2, model=model)
            return
        hooks = hb.as_hooks(board, steps_per_epoch=2, epochs=2, model=model)
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            while not session.should_stop():
                session.run(train_op)
    assert '"words.tsv"' in (tmp_path / "projector_config.pbtxt").read_text()
    for epoch in range(2):
        assert list((tmp_path / "train").glob(f"keras_embedding.ckpt-{epoch}.*"))


def test_remote_monitor_posts_what_it_posts_in_fit(
    keras: Any, server: tuple[str, list[Any]]
) -> None:
    """As a form, to a path, with headers."""
    url, posted = server
    for run in runs(keras).values():
        monitor = keras.callbacks.RemoteMonitor(
            root=url, path="/here", field="epoch", headers={"X-Token": "secret"}
        )
        run([monitor], epochs=2)
    assert len(posted) == 4
    for ours, theirs in zip(posted[2:], posted[:2], strict=True):
        assert ours[0] == theirs[0] == "/here"
        assert ours[1]["X-Token"] == "secret"
        forms = [urllib.parse.parse_qs(p[2])["epoch"][0] for p in (ours, theirs)]
        sent = [json.loads(f) for f in forms]
        assert list(sent[0]) == list(sent[1])
        assert sent[0] == pytest.approx(sent[1], rel=2e-5)


@pytest.mark.slow
def test_stock_callbacks_serve_fit_before_and_after(keras: Any, tmp_path: Path) -> None:
    c = keras.callbacks
    callbacks = [
        c.EarlyStopping("val_loss", patience=1, restore_best_weights=True),
        c.ReduceLROnPlateau("val_loss", patience=1, min_delta=0.05, factor=0.5),
        c.TensorBoard(str(tmp_path / "tb"), write_graph=False),
        c.ModelCheckpoint(str(tmp_path / "w.weights.h5"), save_weights_only=True),
    ]
    found = [
        run(callbacks, epochs=30, rate=0.3)
        for _ in range(2)
        for run in runs(keras).values()
    ]
    assert len(found[0].history["loss"]) < 30
    for other in found[1:]:
        assert_same(other, found[0])
