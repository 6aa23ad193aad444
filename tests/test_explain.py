"""`hb.explain` agrees with the converters and the lifecycles, and never writes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_support import STOCK, stock_of
from hook_support import ROWS

import hookbridge as hb
from hookbridge import errors
from hookbridge.adapters.guests.guest_record import record_of
from hookbridge.ground import lifecycle
from hookbridge.insight.explanation import HOSTS
from hookbridge.testing import EventLog, RecordingCallback, RecordingHook


def test_native_and_wrapped_in_both_hosts(keras: Any) -> None:
    guests = [RecordingHook(EventLog()), keras.callbacks.EarlyStopping("loss")]
    in_fit = hb.explain(guests, host="fit")
    # A Keras 3 callback is wrapped where the host may be a `fit` of Keras 2.
    verdict = "wrapped" if record_of(guests[1]).is_foreign else "native"
    assert [g.verdict for g in in_fit.guests] == ["wrapped", verdict]
    in_session = hb.explain(guests, host="session")
    assert [g.verdict for g in in_session.guests] == ["native", "wrapped"]
    assert [g.kind for g in in_session.guests] == ["hook", "callback"]
    # What is wrapped already is explained as itself.
    assert hb.explain(hb.as_callbacks(guests), "fit") == in_fit
    hooks = hb.as_hooks(guests, steps_per_epoch=1)
    assert hb.explain(hooks, "session") == in_session


def test_rows_are_the_overridden_events_and_their_mapping() -> None:
    hook = tf.compat.v1.train.StopAtStepHook(num_steps=3)
    (report,) = hb.explain(hook, host="fit").guests
    names = ["begin", "after_create_session", "before_run", "after_run"]
    assert [e.event for e in report.events] == names
    rows = [lifecycle.EVENTS[name] for name in names]
    assert [e.when for e in report.events] == [row.bridged for row in rows]
    assert [e.counterpart for e in report.events] == [row.counterpart for row in rows]
    (native,) = hb.explain(hook, host="session").guests
    assert [e.when for e in native.events] == [row.native for row in rows]
    assert {e.counterpart for e in native.events} == {None}


def test_refused_guest_has_the_reason_and_no_events() -> None:
    name, module = "LocalCLIDebugHook", {"__module__": "tensorflow.x"}
    hook = type(name, (RecordingHook,), module)(EventLog())
    (report,) = hb.explain(hook, host="fit").guests
    assert report.verdict == "refused"
    assert "`LocalCLIDebugHook` cannot run in `Model.fit`" in report.reason
    assert report.events == ()
    with pytest.raises(errors.RefusedError) as caught:
        hb.as_callbacks(hook)
    assert report.reason == str(caught.value)


def test_parameter_server_delivers_late_on_the_coordinator(tmp_path: Path) -> None:
    log = EventLog()
    epochs = RecordingCallback(log, only=["on_epoch_end"])
    batches = RecordingCallback(log, only=["on_train_batch_end"])
    with tf.Graph().as_default():  # the writer of the hook needs a graph
        profiler = tf.compat.v1.train.ProfilerHook(1, output_dir=str(tmp_path))
    guests = [epochs, batches, RecordingHook(log), profiler]
    *told, refused = hb.explain(guests, host="parameter_server").guests
    assert [g.verdict for g in told] == ["native", "wrapped", "wrapped"]
    assert {g.runs_on for g in told} == {"the coordinator"}
    late = {e.event: "`max_lag` steps late" in e.when for e in told[1].events}
    assert late == {"on_train_batch_end": True, "set_model": False, "set_params": False}
    assert refused.verdict == "refused"
    assert "`ProfilerHook` cannot run under `ParameterServerStrategy`" in refused.reason


def test_roles_are_told_and_can_be_set(keras: Any) -> None:
    stopping = keras.callbacks.EarlyStopping("val_loss")
    hook = hb.set_role(RecordingHook(EventLog()), "chief")
    other = keras.callbacks.LambdaCallback()
    report = hb.explain([stopping, hook, other], host="session")
    assert [g.role for g in report.guests] == ["chief", "chief", "split"]
    assert "EarlyStopping (callback): wrapped, role 'chief'" in str(report)
    text = " ".join(report.details().split())
    assert "runs on the chief, and an evaluator for what is given to it" in text
    assert "runs on every worker; the validation and `on_train_end` on the" in text
    # In `fit` a callback runs in every process, unless `set_role` says otherwise.
    roles: tuple[Any, ...] = ("chief", "split", "evaluator")
    set_roles = [hb.set_role(keras.callbacks.LambdaCallback(), r) for r in roles]
    report = hb.explain([stopping, *set_roles], host="fit")
    assert [g.role for g in report.guests] == ["all", "chief", "all", "evaluator"]
    assert report.guests[0].runs_on == "every process that it is given to"
    assert report.guests[1].runs_on.startswith("the chief")
    report = hb.explain(set_roles[::2], host="parameter_server")
    assert [g.runs_on for g in report.guests] == ["the coordinator", "the evaluator"]


def test_a_file_that_a_restart_overwrites(
    subtests: pytest.Subtests, keras: Any, tmp_path: Path
) -> None:
    path = str(tmp_path / "log.csv")
    for append in (False, True):
        with subtests.test(str(append)):
            guest = keras.callbacks.CSVLogger(path, append=append)
            report = hb.explain(guest)
            assert (f"overwrites `{path}`" in report.guests[0].lost) is not append
            assert ("at a restart it overwrites" in str(report)) is not append


def test_missing_directory_is_a_refusal_and_nothing_is_written(
    keras: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (report,) = hb.explain(keras.callbacks.CSVLogger("/nope/x.csv")).guests
    assert report.verdict == "refused"
    assert "the directory `/nope` does not exist" in report.reason
    written: list[Any] = []
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **kw: written.append(kw))
    saver = keras.callbacks.ModelCheckpoint(
        str(tmp_path / "w.weights.h5"), save_weights_only=True
    )
    assert hb.explain(saver).guests[0].verdict == "wrapped"
    assert not written


def test_report_prints_and_is_json() -> None:
    report = hb.explain(tf.compat.v1.train.StopAtStepHook(num_steps=3), host="fit")
    assert str(report).splitlines() == [
        "Model.fit, evaluate and predict: all guests work (1)",
        "  StopAtStepHook (hook): wrapped",
        "Events and costs: `.details()`, or `hookbridge explain --details`.",
    ]
    text = report.details()
    assert text.splitlines()[:3] == [
        "Host: Model.fit, evaluate and predict",
        "",
        "StopAtStepHook (hook): wrapped",
    ]
    assert "(counterpart: `on_train_batch_end`)" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 88
    assert json.loads(json.dumps(report.to_json()))["guests"][0]["kind"] == "hook"
    assert str(hb.explain([])).endswith(": no guests")
    assert hb.explain([]).details().endswith("No guests.")


@pytest.mark.parametrize(
    ("items", "host", "error", "message"),
    [
        ([], ["fit"], errors.InvalidArgumentError, r"Received `host=\['fit'\]`"),
        ([], "sess", errors.InvalidArgumentError, "Received `host='sess'`; expected"),
        (object(), "fit", errors.NotAGuestError, "of type `object`; expected"),
        (RecordingHook, "fit", errors.NotAGuestError, "Construct it first"),
    ],
)
def test_bad_input(items: Any, host: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        hb.explain(items, host)


# --- every stock guest --------------------------------------------------------
# Audit events that change the disk; `open` counts too if it opens for writing.
_WRITES = ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "tempfile.mkstemp")
_seen: list[str] = []


@pytest.fixture(scope="module", autouse=True)
def _audited() -> Iterator[None]:
    is_on = [True]

    def audit(event: str, args: tuple[Any, ...]) -> None:
        opens = event == "open" and any(c in str(args[1]) for c in "wax+")
        if is_on and (event in _WRITES or opens):
            _seen.append(f"{event}{args}")

    sys.addaudithook(audit)  # cannot be removed
    yield
    is_on.clear()


def assert_told(guest: Any) -> None:
    """Each host gives a verdict, with a reason if it refuses; nothing is written."""
    _seen.clear()
    for host in HOSTS:
        (report,) = hb.explain(guest, host).guests
        assert bool(report.reason) is (report.verdict == "refused"), host
    # A hook's writer makes its event files on a thread of its own.
    assert not [each for each in _seen if "tfevents" not in each]


def test_callbacks(keras: Any, tmp_path: Path) -> None:
    for name in stock_of(keras):
        for folder in (tmp_path, tmp_path / "nowhere"):
            assert_told(STOCK[name](keras.callbacks, folder))


def test_hooks(tmp_path: Path) -> None:
    for row in ROWS:
        for folder in (tmp_path, tmp_path / "nowhere"):
            assert_told(row.make(folder, "fit"))


def test_the_watch_sees_what_is_written(tmp_path: Path) -> None:
    _seen.clear()
    (tmp_path / "file").write_text("x")
    assert len(_seen) == 1


def test_a_hook_needs_a_keras_that_computes_with_tensorflow(
    keras3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused by name before training, and the model is as it was."""
    hook = tf.compat.v1.train.StopAtStepHook(num_steps=1)
    stop = keras3.callbacks.EarlyStopping("loss")
    model = keras3.Sequential([keras3.layers.Dense(1)])
    model.compile("sgd", "mse")
    made_before, x = hb.as_callbacks(hook), np.ones((4, 1))
    before = dict(vars(model))
    # Another backend may not be installed: this is what Keras says if it is chosen.
    monkeypatch.setattr(keras3.backend, "backend", lambda: "jax")
    words = r"`StopAtStepHook` cannot run.*computes with `jax`.*KERAS_BACKEND"
    with pytest.raises(errors.RefusedError, match=words):
        model.fit(x, x, verbose=0, callbacks=made_before)
    changed = [k for k, v in vars(model).items() if before.get(k) is not v]
    assert not [name for name in changed if "function" in name]
    monkeypatch.setattr("hookbridge.ground.compat.keras_flavours", lambda: (keras3,))
    report = hb.explain([hook, stop], host="fit")
    assert [g.verdict for g in report.guests] == ["refused", "native"]
    assert "KERAS_BACKEND" in report.guests[0].reason
    with pytest.raises(errors.RefusedError, match=words):
        hb.as_callbacks([hook])
    monkeypatch.undo()
    model.fit(x, x, verbose=0)
