"""`SavedModelExporter` and `ModelUploader`, to real servers and folders."""

from __future__ import annotations

import http.server
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from ramps import fit_ramp, served, session_ramp

import hookbridge as hb

v1 = tf.compat.v1


def test_export_from_fit(keras: Any, tmp_path: Path) -> None:
    exporter = hb.callbacks.SavedModelExporter(str(tmp_path / "model"))
    model = fit_ramp(keras, [exporter])
    x = np.array([[1.0], [-2.0]], "float32")
    np.testing.assert_allclose(served(tmp_path / "model", x), model.predict(x))
    fit_ramp(keras, [exporter], epochs=1)  # replaces the first export
    np.testing.assert_allclose(served(tmp_path / "model", x), x * 27.0)
    assert sorted(tmp_path.iterdir()) == [tmp_path / "model"]


def test_export_of_a_keras_model_in_a_session(keras2: Any, tmp_path: Path) -> None:
    exporter = hb.callbacks.SavedModelExporter()
    x = np.array([[1.0], [-2.0]], "float32")
    with tf.Graph().as_default():
        layer = keras2.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
        model = keras2.Sequential([keras2.Input([1]), layer])
        loss = tf.reduce_mean(-model(tf.ones([2, 1])))
        step = v1.train.get_or_create_global_step()
        train_op = v1.train.GradientDescentOptimizer(0.5).minimize(loss, step)
        params = {"saved_model_path": str(tmp_path / "model")}
        hooks = hb.as_hooks([exporter], model=model, params=params)
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            for _ in range(3):
                session.run(train_op)
    np.testing.assert_allclose(served(tmp_path / "model", x), x * 1.5)


def slope_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
    """A `model_fn` that learns one slope."""
    slope = v1.get_variable("slope", [], initializer=v1.zeros_initializer())
    predictions = {"y": features["x"] * slope}
    if mode == hb.estimator.ModeKeys.PREDICT:
        return hb.estimator.EstimatorSpec(mode, predictions=predictions)
    loss = -slope * tf.reduce_mean(features["x"])  # the mean is 1 below
    step = v1.train.get_or_create_global_step()
    train_op = v1.train.GradientDescentOptimizer(params["rate"]).minimize(loss, step)
    return hb.estimator.EstimatorSpec(
        mode, predictions=predictions, loss=loss, train_op=train_op
    )


def slope_input(x: Any) -> Callable[[], Any]:
    return lambda: tf.data.Dataset.from_tensors(({"x": x}, x))


def serving_input_fn() -> Any:
    x = v1.placeholder(tf.float32, [None], name="x")
    return hb.estimator.export.ServingInputReceiver({"x": x}, {"x": x})


def test_export_and_predictions_of_a_model_fn(tmp_path: Path) -> None:
    params = {"rate": 0.25}
    x = np.array([1.0, -2.0, 4.0], "float32")
    called: list[tuple[str, Any, Any]] = []

    def note(function: str) -> None:
        called.append((function, v1.get_default_graph(), threading.get_ident()))

    def noted_model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
        note("model_fn")
        return slope_fn(features, labels, mode, params)

    def noted_input_fn() -> Any:
        note("serving_input_fn")
        return serving_input_fn()

    exporter = hb.callbacks.SavedModelExporter(
        str(tmp_path / "model"),
        model_fn=noted_model_fn,
        serving_input_fn=noted_input_fn,
        model_params=params,
    )
    estimator = hb.estimator.Estimator(slope_fn, str(tmp_path / "run"), params=params)
    for _ in range(2):
        estimator.train(slope_input(x), hooks=hb.as_hooks([exporter]))
    np.testing.assert_allclose(served(tmp_path / "model", x), x * 0.5)
    # Once each in both exports, on the loop's thread and a graph of the export's own.
    functions, graphs, threads = zip(*called, strict=True)
    assert functions == ("serving_input_fn", "model_fn") * 2
    assert graphs[0] is graphs[1] and graphs[2] is graphs[3] is not graphs[0]
    assert set(threads) == {threading.get_ident()}
    got: list[Any] = []
    processor = hb.callbacks.PredictionOutputsProcessor(got.append)
    hooks = hb.as_hooks([processor])
    list(estimator.predict(slope_input(x), hooks=hooks))
    np.testing.assert_allclose(got[0]["y"], x * 0.5)


class _Server(http.server.BaseHTTPRequestHandler):
    """Takes PUT; the first `refusals` requests get an error."""

    files: dict[str, bytes]
    times: list[float]
    refusals = 0

    def do_PUT(self) -> None:
        cls = type(self)
        cls.times.append(time.monotonic())
        body = self.rfile.read(int(self.headers["Content-Length"]))
        cls.refusals -= 1
        if cls.refusals < 0:
            cls.files[self.path] = body
        self.send_response(503 if cls.refusals >= 0 else 201)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Any]:
    """A real HTTP server; `(url, handler class)`."""
    handler = type("Handler", (_Server,), {"files": {}, "times": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}/models", handler
        running.shutdown()


def exported(folder: Path) -> dict[str, bytes]:
    """Fills a folder like a SavedModel; returns `{path: content}`."""
    files = {"saved_model.pb": b"graph", "variables/variables.index": b"index"}
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return files


def test_upload_by_http_tries_again(server: Any, tmp_path: Path) -> None:
    url, handler = server
    files = exported(tmp_path)
    handler.refusals = 2
    uploader = hb.callbacks.ModelUploader(url, str(tmp_path), retries=2, wait_secs=0)
    session_ramp([uploader])
    assert uploader.error is None
    assert handler.files == {f"/models/{name}": files[name] for name in files}
    assert list(handler.files)[-1] == "/models/saved_model.pb"


def test_each_retry_waits_twice_as_long(server: Any, tmp_path: Path) -> None:
    url, handler = server
    exported(tmp_path)
    handler.refusals = 3
    uploader = hb.callbacks.ModelUploader(url, str(tmp_path), wait_secs=0.2)
    session_ramp([uploader])
    assert uploader.error is None
    *waits, _ = np.diff(handler.times)  # before the retries of the first file
    assert len(waits) == 3
    for wait, least in zip(waits, (0.2, 0.4, 0.8), strict=True):
        assert wait >= least


def test_a_failed_upload_loses_nothing(server: Any, tmp_path: Path, keras: Any) -> None:
    url, handler = server
    handler.refusals = 99
    path = str(tmp_path / "model")
    uploader = hb.callbacks.ModelUploader(url, path, retries=1, wait_secs=0)
    model = fit_ramp(keras, [hb.callbacks.SavedModelExporter(path), uploader])
    assert handler.refusals == 97
    assert "503" in str(uploader.error)
    x = np.array([[1.0]], "float32")
    np.testing.assert_allclose(served(tmp_path / "model", x), model.predict(x))


def test_upload_to_a_folder(tmp_path: Path) -> None:
    files = exported(tmp_path / "model")
    uploader = hb.callbacks.ModelUploader(str(tmp_path / "far" / "away"))
    without = hb.callbacks.ModelUploader(str(tmp_path / "far"), str(tmp_path / "none"))
    params = {"saved_model_path": str(tmp_path / "model")}
    session_ramp([uploader, without], params=params)
    assert uploader.error is None
    for name, content in files.items():
        assert (tmp_path / "far" / "away" / name).read_bytes() == content
    assert isinstance(without.error, FileNotFoundError)
