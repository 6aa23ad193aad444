"""What an Estimator costs over a session loop: steps, start-up, evaluations, towers.

    python -m benchmarks.estimator --clock=cpu

The same `model_fn` trains in `MonitoredTrainingSession` and in `hb.estimator`, which is
`tf.estimator` on TF 2.15, and with `hb.replicate_model_fn` in 1, 2 and 4 towers. Run it
on both versions of TensorFlow: the session loop shows how much of a difference comes
from TensorFlow itself. Every measurement has its own process.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

import hookbridge as hb
from benchmarks import base
from benchmarks.child import measured
from benchmarks.overhead_cases import RATE, SIZES, v1

WARM_UP = 20  # steps before the clock starts
EVERY = 50  # steps between two evaluations
TOWERS = (1, 2, 4)


def input_fn() -> Any:
    """Batches of 32 examples, without end."""
    random = np.random.default_rng(0)
    x = random.normal(size=[32 * 50, SIZES[0]]).astype("float32")
    y = random.integers(SIZES[-1], size=[32 * 50])
    return tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(32)


def model_fn(features: Any, labels: Any, mode: str) -> Any:
    """A network of two layers."""
    inputs, hidden, outputs = SIZES
    initial = np.random.default_rng(1)
    weights = [
        v1.get_variable(
            name, initializer=initial.normal(size=size, scale=0.1).astype("float32")
        )
        for name, size in (("w1", [inputs, hidden]), ("w2", [hidden, outputs]))
    ]
    logits = tf.nn.relu(features @ weights[0]) @ weights[1]
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    )
    optimizer = hb.TowerOptimizer(v1.train.GradientDescentOptimizer(RATE))
    train_op = optimizer.minimize(loss, v1.train.get_or_create_global_step())
    metrics = {"accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, 1))}
    return hb.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train_op, eval_metric_ops=metrics
    )


class Clock(v1.train.SessionRunHook):  # type: ignore[misc, name-defined]
    """Seconds to the end of the first step, and of a step after the warm-up."""

    def __init__(self, steps: int) -> None:
        self._start = base.clock()
        self._steps = steps
        self._done = 0
        self._warm = 0.0
        self.first = self.per_step = 0.0

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._done += 1
        if self._done == 1:
            self.first = base.clock() - self._start
        elif self._done == WARM_UP:
            self._warm = base.clock()
        elif self._done == WARM_UP + self._steps:
            self.per_step = (base.clock() - self._warm) / self._steps
            run_context.request_stop()


def config(**options: Any) -> Any:
    """A `RunConfig` that writes few files, so that the steps are measured."""
    never: dict[str, Any] = {
        "save_summary_steps": None,
        "save_checkpoints_secs": None,
        "log_step_count_steps": None,
    }
    return hb.estimator.RunConfig(
        model_dir=tempfile.mkdtemp(prefix="estimator"), **{**never, **options}
    )


def devices(count: int) -> list[str]:
    """Splits the CPU into logical devices; returns their names."""
    (cpu,) = tf.config.list_physical_devices("CPU")
    each = [tf.config.LogicalDeviceConfiguration() for _ in range(count)]
    tf.config.set_logical_device_configuration(cpu, each)
    return [f"/cpu:{i}" for i in range(count)]


def session(steps: int) -> dict[str, float]:
    """The floor: the model in `MonitoredTrainingSession`."""
    clock = Clock(steps)
    with tf.Graph().as_default():
        iterator = v1.data.make_one_shot_iterator(input_fn())
        features, labels = iterator.get_next()
        spec = model_fn(features, labels, "train")
        with v1.train.MonitoredTrainingSession(
            hooks=[clock], log_step_count_steps=None
        ) as running:
            while not running.should_stop():
                running.run([spec.train_op, spec.loss])
    return {"per_step": clock.per_step, "first": clock.first}


def estimator(steps: int, towers: int) -> dict[str, float]:
    """`Estimator.train`, in towers if there are any."""
    function = model_fn
    if towers:
        function = hb.replicate_model_fn(model_fn, devices=devices(towers))
    clock = Clock(steps)
    hb.estimator.Estimator(function, config=config()).train(input_fn, hooks=[clock])
    return {"per_step": clock.per_step, "first": clock.first}


def evaluated(rounds: int) -> dict[str, float]:
    """Seconds of 50 steps with their checkpoint and evaluation."""

    class Starts(v1.train.SessionRunHook):  # type: ignore[misc, name-defined]
        """Notes when each evaluation begins."""

        def __init__(self) -> None:
            self.times: list[float] = []

        def begin(self) -> None:
            self.times.append(base.clock())

    starts = Starts()
    hb.estimator.train_and_evaluate(
        hb.estimator.Estimator(model_fn, config=config(save_checkpoints_steps=EVERY)),
        hb.estimator.TrainSpec(input_fn, max_steps=EVERY * (rounds + 1)),
        hb.estimator.EvalSpec(input_fn, steps=5, hooks=[starts], throttle_secs=0),
    )
    pairs = zip(starts.times[1:], starts.times, strict=False)
    return {"per_round": statistics.median(b - a for b, a in pairs)}


def main(arguments: list[str] | None = None) -> None:
    options = base.parse(str(__doc__), arguments, steps=300)
    tf.get_logger().setLevel("ERROR")
    rounds = 4 if options.steps >= EVERY else 1
    cases: dict[str, Callable[[], dict[str, float]]] = {
        "MonitoredTrainingSession": lambda: session(options.steps),
        "Estimator": lambda: estimator(options.steps, 0),
        **{
            f"{n} towers": (lambda n=n: estimator(options.steps, n))  # type: ignore[misc]
            for n in TOWERS
        },
        "50 steps and an evaluation": lambda: evaluated(rounds),
    }
    found = measured(cases, options.repeats)
    base.print_facts(options)
    floor = found["MonitoredTrainingSession"]
    rows = []
    for name, results in found.items():
        if "per_step" not in results[0]:
            continue
        ratio, first = (
            statistics.median(
                a[key] / b[key] for a, b in zip(results, floor, strict=True)
            )
            for key in ("per_step", "first")
        )
        secs, start = (min(r[key] for r in results) for key in ("per_step", "first"))
        rows.append(
            [name, f"{1 / secs:.0f}", f"{ratio:.2f}", f"{start:.2f}", f"{first:.2f}"]
        )
    header = ["loop", "most steps/s", "a step, ratio", "fastest first step, s", "ratio"]
    print(base.markdown(rows, header))
    per_round = statistics.median(
        r["per_round"] for r in found["50 steps and an evaluation"]
    )
    print(f"50 steps, a checkpoint and an evaluation of 5 steps: {per_round:.2f} s")
    base.write_results(options, cases=found)


if __name__ == "__main__":
    main()
