"""What hooks cost in `Model.fit`, compared with callbacks that do the same.

    python -m benchmarks.hook_fetches --json=fetches.json
    python -m benchmarks.hook_fetches --names=10000 --steps=20
    TF_USE_LEGACY_KERAS=1 python -m benchmarks.hook_fetches --v1_graph

It measures three pairs. 1 and 10 hooks that fetch nothing are compared with as many
native callbacks with empty batch methods. `LoggingTensorHook` on the loss and a layer's
output in every step is compared with a hand-written callback and `train_step` that log
the same. In a v1 graph, where Keras 2 has no `train_step`, a hook that keeps the loss
of every step is compared with a callback that keeps it from its logs; and TensorFlow's
`MonitoredTrainingSession`, which a step with hooks is a run of there, with the callable
of a session, which a step without hooks is a call of. With `--names` it
measures one hook that fetches so many tensors in each step: natively in a session, and
in `fit`; both beside the same loop without it.
"""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
import tensorflow as tf

import hookbridge as hb
from benchmarks import base
from benchmarks.fit_cases import fit_case, idle_cases, keras_model
from benchmarks.overhead_cases import (
    BATCH_SIZE,
    SIZES,
    IdleHook,
    LossCallback,
    LossHook,
    Work,
    callable_case,
    session_case,
)

v1: Any = tf.compat.v1
keras: Any = tf.keras


class HandModel(keras.Model):  # type: ignore[misc]
    """A `train_step` that returns the hidden layer's output beside the loss."""

    def compile(self, **options: Any) -> None:
        self.mean = keras.metrics.Mean(name="loss")
        super().compile(**options)

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        with tf.GradientTape() as tape:
            hidden = self.layers[1](x)
            loss = self.compute_loss(x=x, y=y, y_pred=self.layers[2](hidden))
        variables = self.trainable_variables
        gradients = tape.gradient(loss, variables)
        self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
        self.mean.update_state(loss)
        return {"loss": self.mean.result(), "batch_loss": loss, "hidden": hidden}

    @property
    def metrics(self) -> list[Any]:
        return [self.mean]


class HandCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Logs what the hand-written step returns, as `LoggingTensorHook` does."""

    _supports_tf_logs = True  # takes the tensors and converts what it needs

    def __init__(self, note: Any) -> None:
        super().__init__()
        self._note = note

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        loss = np.asarray(logs["batch_loss"])
        hidden = np.asarray(logs["hidden"])
        v1.logging.info(self._note({"loss:0": loss, "hidden/Relu:0": hidden}))


class ManyFetches(v1.train.SessionRunHook):  # type: ignore[misc]
    """Fetches many tensors, by name, that it has made of the loss."""

    def __init__(self, names: int) -> None:
        self._numbers = range(names)
        self.last: list[float] = []

    def begin(self) -> None:
        loss = v1.get_default_graph().get_tensor_by_name("loss:0")
        made = [tf.add(loss, float(i)) for i in self._numbers]
        self._args = v1.train.SessionRunArgs([tensor.name for tensor in made])

    def before_run(self, run_context: Any) -> Any:
        return self._args

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.last = run_values.results


def measure_names(work: Work, names: int, repeats: int) -> dict[str, base.Timing]:
    """A hook with many fetches beside none, in a session and in `fit`."""
    hooks = ManyFetches(names), ManyFetches(names)
    sessions = [
        session_case("MonitoredTrainingSession, no hook", work, []),
        session_case("MonitoredTrainingSession, hook", work, [hooks[0]]),
    ]
    timings = base.measure_open(sessions, repeats=repeats)
    cases = [
        fit_case("Model.fit, no hook", work, []),
        fit_case("Model.fit, hook", work, hb.as_callbacks([hooks[1]])),
    ]
    timings |= base.measure(cases, repeats=repeats)
    for hook in hooks:
        assert np.allclose(np.diff(hook.last), 1.0, atol=1e-2), "not what it asked for"
        assert len(hook.last) == names
    return timings


class Notes:
    """What one side logged; the losses are compared with those of the other side."""

    def __init__(self) -> None:
        self.losses: list[float] = []

    def __call__(self, values: Any) -> str:
        self.losses.append(float(values["loss:0"]))
        assert values["hidden/Relu:0"].shape == (BATCH_SIZE, SIZES[1])
        return "logged"


Pair = tuple[tuple[Any, Any], list[base.Case]]


def logging_cases(work: Work) -> Pair:
    """What logs two tensors in every step: by hand and by a hook."""
    by_hand, by_hook = Notes(), Notes()
    names = ["loss:0", "hidden/Relu:0"]
    hook = v1.train.LoggingTensorHook(names, every_n_iter=1, formatter=by_hook)
    model, callback = keras_model(work, HandModel), HandCallback(by_hand)
    return (by_hand, by_hook), [
        fit_case("hand-written step and callback", work, [callback], model),
        fit_case("LoggingTensorHook", work, hb.as_callbacks([hook])),
    ]


def loss_cases(work: Work) -> Pair:
    """What keeps the loss of every step: a callback and a hook."""
    callback, hook = LossCallback(), LossHook()
    return (callback, hook), [
        fit_case("callback that keeps the loss", work, [callback]),
        fit_case("hook that fetches the loss", work, hb.as_callbacks([hook])),
    ]


def report_sessions(work: Work, repeats: int) -> None:
    """Prints what TensorFlow's own session with hooks takes for a step."""
    name = "MonitoredTrainingSession, 1 idle hook"
    cases = [callable_case(work), session_case(name, work, [IdleHook()])]
    timings = base.measure_open(cases, repeats=repeats)
    over = statistics.median(timings[name].over(timings["Session.make_callable"]))
    print(f"{name}: {over:.0f} us/step over Session.make_callable")


def main(arguments: list[str] | None = None) -> None:
    parser = base.parser(str(__doc__), steps=500)
    parser.add_argument("--names", type=int, default=0, help="that one hook fetches")
    parser.add_argument("--v1_graph", action="store_true", help="`fit` of a v1 graph")
    options = base.options_of(parser, arguments)
    v1.logging.set_verbosity(v1.logging.ERROR)
    work = Work(options.steps)
    if options.names:
        timings = measure_names(work, options.names, options.repeats)
        for name, timing in timings.items():
            print(f"{name}: {timing.microsecs:.0f} us/step")
        base.write_json(options, timings=timings)
        return
    if options.v1_graph:
        v1.disable_v2_behavior()
    measured = loss_cases if options.v1_graph else logging_cases
    sides, pair = measured(work)
    cases = [*idle_cases(work), *pair]
    timings = base.measure(cases, repeats=options.repeats)
    means = (float(np.mean(side.losses)) for side in sides)
    base.check_losses(dict(zip(("native", "bridged"), means, strict=True)))
    base.report_pairs("`Model.fit`", options, timings)
    if options.v1_graph:
        report_sessions(work, options.repeats)


if __name__ == "__main__":
    base.one_thread_per_op()
    main()
