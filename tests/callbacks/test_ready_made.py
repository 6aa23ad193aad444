"""The ready-made callbacks in `fit` and in session loops."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import hookbridge as hb
from hookbridge.adapters.guests.roles import role_of

v1 = tf.compat.v1
RATES = [0.5, 0.25, 0.25, 0.125, 1.0, 0.0625]


def ramp_model(keras: Any) -> Any:
    """One weight whose gradient is -1: each step adds the learning rate to it."""
    model = keras.Sequential(
        [
            keras.Input([1]),
            keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros"),
        ]
    )
    model.compile(keras.optimizers.SGD(9.0), loss=lambda y_true, y_pred: -y_pred)
    return model


def fit_ramp(keras: Any, callbacks: list[Any], epochs: int = 2, **options: Any) -> Any:
    model = ramp_model(keras)
    ones = np.ones([6, 1], "float32")
    model.fit(
        *(ones, ones),
        batch_size=2,
        epochs=epochs,
        verbose=0,
        callbacks=hb.as_callbacks(callbacks),
        **options,
    )
    return model


def session_ramp(callbacks: list[Any], steps: int = 6, **options: Any) -> list[float]:
    """The same weight in a session; its value after each step."""
    found: list[float] = []
    with tf.Graph().as_default():
        weight = v1.get_variable("weight", [], initializer=v1.zeros_initializer())
        step = v1.train.get_or_create_global_step()
        optimizer = v1.train.GradientDescentOptimizer(9.0)
        train_op = optimizer.minimize(tf.negative(weight, name="loss"), step)
        hooks = hb.as_hooks(
            callbacks, steps_per_epoch=3, logs={"loss": "loss:0"}, **options
        )
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            while not session.should_stop() and len(found) < steps:
                session.run(train_op)
                if not session.should_stop():
                    value = session.run_step_fn(
                        lambda step_context: step_context.session.run(weight)
                    )
                    found.append(float(value))
    return found


def test_the_rate_of_each_update_in_fit(keras: Any) -> None:
    seen: list[float] = []

    class Weights(keras.callbacks.Callback):  # type: ignore[misc,name-defined]
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            seen.append(float(self.model.get_weights()[0][0, 0]))

    scheduler = hb.callbacks.LearningRateScheduler(lambda step: RATES[step])
    fit_ramp(keras, [scheduler, Weights()])
    np.testing.assert_allclose(np.diff([0.0, *seen]), RATES, rtol=1e-6)


def test_the_rate_of_each_update_in_a_session() -> None:
    scheduler = hb.callbacks.LearningRateScheduler(lambda step: RATES[step])
    seen = session_ramp([scheduler])
    np.testing.assert_allclose(np.diff([0.0, *seen]), RATES, rtol=1e-6)


def test_a_schedule_that_gives_no_number_is_told() -> None:
    scheduler = hb.callbacks.LearningRateScheduler(lambda step: None)  # type: ignore[arg-type,return-value]
    with pytest.raises(hb.errors.InvalidArgumentError, match="returned None for step"):
        session_ramp([scheduler])


def stop_after(number: int, seen: list[Any]) -> Callable[[list[Any]], bool]:
    def stop(evaluations: list[Any]) -> bool:
        seen.append([dict(each) for each in evaluations])
        return len(evaluations) == number

    return stop


def test_early_stopper_in_fit(keras: Any) -> None:
    seen: list[Any] = []
    stopper = hb.callbacks.EarlyStopper(stop_after(2, seen))
    ones = np.ones([2, 1], "float32")
    model = fit_ramp(keras, [stopper], epochs=9, validation_data=(ones, ones))
    assert int(model.optimizer.iterations) == 6  # 2 epochs of 3 steps
    assert [len(each) for each in seen] == [1, 2]
    assert seen[1] == stopper.evaluations
    assert set(stopper.evaluations[0]) == {"loss"}


def test_early_stopper_in_a_session() -> None:
    seen: list[Any] = []
    stopper = hb.callbacks.EarlyStopper(stop_after(2, seen))
    values = iter([{"accuracy": 0.5}, {"accuracy": 0.75}, {"accuracy": 1.0}])
    steps = session_ramp([stopper], steps=9, validation=lambda: next(values))
    assert len(steps) <= 6
    assert stopper.evaluations == [{"accuracy": 0.5}, {"accuracy": 0.75}]


def summaries(folder: Path) -> list[tuple[int, str, float]]:
    found = []
    for path in sorted(folder.glob("events*")):
        for event in v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                number = float(tf.make_ndarray(value.tensor))
                found.append((event.step, value.tag, number))
    return found


def test_summary_writer_in_fit(keras: Any, tmp_path: Path) -> None:
    writer = hb.callbacks.SummaryWriter(
        lambda metrics: {"twice": 2 * metrics["loss"]}, str(tmp_path)
    )
    ones = np.ones([2, 1], "float32")
    stopper = hb.callbacks.EarlyStopper(lambda evaluations: False)
    fit_ramp(keras, [writer, stopper], validation_data=(ones, ones))
    losses = [each["loss"] for each in stopper.evaluations]
    found = summaries(tmp_path)
    assert [each[:2] for each in found] == [(3, "twice"), (6, "twice")]
    assert [each[2] for each in found] == pytest.approx([2 * each for each in losses])


def test_summary_writer_in_a_session(tmp_path: Path) -> None:
    writer = hb.callbacks.SummaryWriter(lambda metrics: {"twice": 2 * metrics["score"]})
    session_ramp(
        [writer],
        validation=lambda: {"score": 0.5},
        params={"checkpoint_path": str(tmp_path)},
    )
    expected = [(3, "twice", 1.0), (6, "twice", 1.0)]
    assert summaries(tmp_path / "evaluation") == expected


def served(path: Path, features: Any) -> Any:
    """What the exported model gives; the one output."""
    signature = tf.saved_model.load(str(path)).signatures["serving_default"]
    (name,) = signature.structured_input_signature[1]
    (output,) = signature(**{name: tf.constant(features)}).values()
    return output.numpy()


def test_export_from_fit(keras: Any, tmp_path: Path) -> None:
    exporter = hb.callbacks.SavedModelExporter(str(tmp_path / "model"))
    model = fit_ramp(keras, [exporter])
    x = np.array([[1.0], [-2.0]], "float32")
    np.testing.assert_allclose(served(tmp_path / "model", x), model.predict(x))
    fit_ramp(keras, [exporter], epochs=1)  # replaced
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
    loss = -slope * tf.reduce_mean(features["x"])  # that mean is 1 below
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
    exporter = hb.callbacks.SavedModelExporter(
        str(tmp_path / "model"),
        model_fn=slope_fn,
        serving_input_fn=serving_input_fn,
        model_params=params,
    )
    estimator = hb.estimator.Estimator(slope_fn, str(tmp_path / "run"), params=params)
    for _ in range(2):
        estimator.train(slope_input(x), hooks=hb.as_hooks([exporter]))
    np.testing.assert_allclose(served(tmp_path / "model", x), x * 0.5)
    got: list[Any] = []
    processor = hb.callbacks.PredictionOutputsProcessor(got.append)
    hooks = hb.as_hooks([processor])
    list(estimator.predict(slope_input(x), hooks=hooks))
    np.testing.assert_allclose(got[0]["y"], x * 0.5)


def test_predictions_of_fit(keras: Any) -> None:
    got: list[Any] = []
    processor = hb.callbacks.PredictionOutputsProcessor(got.append)
    model = ramp_model(keras)
    x = np.arange(5, dtype="float32")[:, None]
    guests = hb.as_callbacks([processor])
    found = model.predict(x, batch_size=2, verbose=0, callbacks=guests)
    np.testing.assert_allclose(np.concatenate(got), found)
    assert [len(each) for each in got] == [2, 2, 1]


class _Server(http.server.BaseHTTPRequestHandler):
    """Takes PUT; the first `refusals` requests get an error."""

    files: dict[str, bytes]
    refusals = 0

    def do_PUT(self) -> None:
        cls = type(self)
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
    handler = type("Handler", (_Server,), {"files": {}})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}/models", handler
        running.shutdown()


def exported(folder: Path) -> dict[str, bytes]:
    """A folder as a SavedModel may be; `{path: content}`."""
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
    session_ramp([uploader], params={"saved_model_path": str(tmp_path / "model")})
    assert uploader.error is None
    for name, content in files.items():
        assert (tmp_path / "far" / "away" / name).read_bytes() == content


def test_without_a_model_there_is_nothing_to_upload(tmp_path: Path) -> None:
    uploader = hb.callbacks.ModelUploader(str(tmp_path / "far"), str(tmp_path / "none"))
    session_ramp([uploader])
    assert isinstance(uploader.error, FileNotFoundError)


def test_where_each_of_them_runs(tmp_path: Path) -> None:
    callbacks = hb.callbacks
    roles = {
        "worker": [
            callbacks.PredictionOutputsProcessor(print),
            callbacks.LearningRateScheduler(float),
        ],
        "chief": [
            callbacks.SummaryWriter(dict),
            callbacks.EarlyStopper(bool),
            callbacks.SavedModelExporter(str(tmp_path)),
            callbacks.ModelUploader(str(tmp_path)),
        ],
    }
    for role, members in roles.items():
        assert {role_of(each) for each in members} == {role}
    for host in ("session", "fit", "parameter_server"):
        report = hb.explain([*roles["worker"], *roles["chief"]], host=host)
        assert not [g for g in report.guests if g.verdict == "refused"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: hb.callbacks.EarlyStopper(3), "stop_fn=3; expected a function"),  # type: ignore[arg-type]
        (
            lambda: hb.callbacks.SavedModelExporter(model_fn=slope_fn),
            "only one of `model_fn` and `serving_input_fn`",
        ),
        (lambda: session_ramp([hb.callbacks.SavedModelExporter()]), "has no `path`"),
        (lambda: hb.callbacks.ModelUploader("x", retries=-1), "`retries=-1`"),
    ],
)
def test_bad_arguments(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(hb.errors.InvalidArgumentError, match=message):
        make()
