"""What hooks fetch in `end`: the values of the last step, and the log says so."""

from __future__ import annotations

from typing import Any

import hook_hosts as hosts
import pytest
import tensorflow as tf

import hookbridge as hb

train: Any = tf.compat.v1.train


class AtTheEnd(train.SessionRunHook):  # type: ignore[misc]
    """Fetches tensors in `end`, by name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def begin(self) -> None:
        self.tensor = tf.compat.v1.get_default_graph().get_tensor_by_name(self.name)

    def before_run(self, run_context: Any) -> Any:
        return train.SessionRunArgs(self.tensor)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.last = run_values.results

    def end(self, session: Any) -> None:
        self.at_end = session.run(self.tensor)


def fit(keras2: Any, hook: Any) -> None:
    model = hosts.keras_model(keras2)
    model.fit(hosts.X, hosts.Y, verbose=0, callbacks=hb.as_callbacks(hook))


def test_a_tensor_of_the_step_is_that_of_the_last_step(
    keras2: Any, caplog: pytest.LogCaptureFixture
) -> None:
    hook = AtTheEnd("loss:0")
    fit(keras2, hook)
    assert hook.at_end == hook.last
    (line,) = [m for m in caplog.messages if "`end` of" in m]
    assert "AtTheEnd" in line and "'loss'" in line and "last step" in line


@pytest.mark.parametrize(
    "make",
    [
        lambda: train.LoggingTensorHook(["loss:0"], at_end=True),
        lambda: AtTheEnd("hidden/Relu:0"),
    ],
)
def test_every_such_hook_is_named(
    keras2: Any, caplog: pytest.LogCaptureFixture, make: Any
) -> None:
    hook = make()
    fit(keras2, hook)
    assert any(f"`end` of {type(hook).__name__}" in m for m in caplog.messages)


def test_what_is_no_tensor_of_the_step_is_fetched_anew_in_silence(
    keras2: Any, caplog: pytest.LogCaptureFixture
) -> None:
    hook = AtTheEnd("global_step:0")
    fit(keras2, hook)
    assert hook.at_end == hook.last + 1
    assert not any("`end` of" in m for m in caplog.messages)


def test_the_report_says_so() -> None:
    (report,) = hb.explain(AtTheEnd("loss:0"), host="fit").guests
    (end,) = [e for e in report.events if e.event == "end"]
    assert "last step" in end.when
