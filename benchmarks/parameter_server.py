"""What hooks cost in `Model.fit` under `ParameterServerStrategy`.

    python -m benchmarks.parameter_server --json=parameter_server.json

It starts a chief, 2 workers and 1 parameter server as processes of this machine. The
chief trains the same model in turn without hooks, with 10 hooks that keep the loss of
every step and get it at most 30 steps late, with the same hooks in strict order, and
with a callback that fetches the logs of every step by itself.
"""

from __future__ import annotations

import importlib.util
import math
import os
import sys
from typing import Any

if importlib.util.find_spec("tf_keras"):
    # `tf.keras` is Keras 2: Keras 3 does not have this strategy.
    os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf

import hookbridge as hb
from benchmarks import base
from benchmarks.fit_cases import EpochClock, server_model
from benchmarks.overhead_cases import BATCH_SIZE, SIZES, LossHook

keras: Any = tf.keras
NUM_HOOKS = 10
# The losses can be compared, although in each run the workers take other batches: the
# model hardly learns.
TOLERANCE = 0.05
INPUTS, _, OUTPUTS = SIZES
BARE, LAGGING, STRICT, BLOCKING = (
    "no hooks",
    "10 hooks, lagging",
    "10 hooks, strict",
    "a callback that fetches",
)


class FetchingCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Gets the logs of every step as a callback has to do without hookbridge."""

    def __init__(self) -> None:
        super().__init__()
        self._supports_tf_logs = True
        self.losses: list[float] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.losses.append(float(logs.fetch()["loss"]))


class Bench:
    """A model on the parameter server, and the cases that train it."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._model = server_model()
        rng = np.random.default_rng(0)
        x = rng.normal(size=[1024, INPUTS]).astype(np.float32)
        y = rng.integers(OUTPUTS, size=[1024])

        def batches(context: Any) -> Any:
            return tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(BATCH_SIZE)

        self._data = keras.utils.experimental.DatasetCreator(batches)

    def _fit(self, guests: list[Any], max_lag: int | None = None) -> base.Sample:
        watch = EpochClock()
        history = self._model.fit(
            self._data,
            epochs=2,
            steps_per_epoch=self._steps,
            callbacks=[watch, *hb.as_callbacks(guests, max_lag=max_lag)],
            verbose=0,
        )
        for guest in guests:
            if len(guest.losses) != 2 * self._steps:
                raise AssertionError(
                    f"{guest} was given {len(guest.losses)} losses of {2 * self._steps}"
                )
            if not all(map(math.isfinite, guest.losses)):
                raise AssertionError(f"{guest} was given a loss that is none")
        return base.Sample(watch.secs / self._steps, history.history["loss"][-1])

    def cases(self) -> list[base.Case]:
        def hooks() -> list[Any]:
            return [LossHook() for _ in range(NUM_HOOKS)]

        return [
            base.Case(BARE, lambda: self._fit([])),
            base.Case(LAGGING, lambda: self._fit(hooks())),
            base.Case(STRICT, lambda: self._fit(hooks(), max_lag=0)),
            base.Case(BLOCKING, lambda: self._fit([FetchingCallback()])),
        ]


def coordinate(options: Any) -> None:
    """The chief: measures and prints."""
    timings = base.measure(
        Bench(options.steps).cases(), repeats=options.repeats, tolerance=TOLERANCE
    )
    base.print_facts(options)
    rows = [
        [
            name,
            f"{1e6 / timing.microsecs:.0f}",
            f"{100 / timing.ratio_to(timings[BARE]):.0f} %",
        ]
        for name, timing in timings.items()
    ]
    print(base.markdown(rows, ["`Model.fit`", "steps/s", "of no hooks"]), flush=True)
    base.write_json(options, timings=timings)


def main(arguments: list[str] | None = None) -> int:
    options = base.parse(str(__doc__), arguments, steps=400)
    if os.environ.get("TF_CONFIG"):
        coordinate(options)
        return 0
    given = sys.argv[1:] if arguments is None else arguments
    return hb.loops.LocalCluster(num_workers=2, num_ps=1).run(
        [sys.executable, "-m", "benchmarks.parameter_server", *given]
    )


if __name__ == "__main__":
    sys.exit(main())
