"""Many fits in one cluster; their results go to `EVENTS`.

TF_CONFIG=... python tests/adapters/parameter_server/events_job.py EVENTS
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
HELPERS = [str(HERE.parent / "helpers"), str(HERE.parents[1] / "helpers")]
sys.path[:0] = [str(HERE), *HELPERS, str(HERE.parents[2])]

import tensorflow as tf  # noqa: E402
from quick_traces import look_often  # noqa: E402

import hookbridge as hb  # noqa: E402

look_often()
v1: Any = tf.compat.v1
STRATEGY = hb.loops.parameter_server_strategy()
REFUSED = ""
try:
    # No Keras is imported yet but TensorFlow's own: Keras 3 since TF 2.16.
    hb.as_callbacks([v1.train.SessionRunHook()])
except hb.errors.RefusedError as e:
    REFUSED = str(e)

from ps_guests import (  # noqa: E402
    BATCHES,
    EPOCHS,
    TRACES,
    Recorder,
    TrainedByItsOwn,
    batches,
    guests,
    keras,
    mean_output,
    model,
    note,
    noting_callback,
    square_output,
)

FOLDER = Path(sys.argv[1]).parent


class Hook(v1.train.SessionRunHook):  # type: ignore[misc]
    """A hook of functions: `before_run(context)`, `after_run(context, values)`."""

    def __init__(self, before: Any = None, after: Any = None) -> None:
        self._before, self._after = before, after

    def before_run(self, run_context: Any) -> Any:
        return self._before and self._before(run_context)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if self._after is not None:
            self._after(run_context, run_values)


class Job:
    """The fits; each notes its results."""

    def __init__(self, strategy: Any) -> None:
        self._strategy = strategy
        self._data = keras.utils.experimental.DatasetCreator(batches)

    def model(self, loss: Any, rate: float, **options: Any) -> Any:
        with self._strategy.scope():
            return model(loss, rate, **options)

    def fit(self, made: Any, items: list[Any], **options: Any) -> Any:
        lag = options.pop("max_lag", None)
        return made.fit(
            self._data,
            callbacks=hb.as_callbacks(items, max_lag=lag),
            verbose=0,
            **{"epochs": EPOCHS, "steps_per_epoch": BATCHES, **options},
        )

    def events(self) -> None:
        for lag in (None, 0):
            made, log = self.model(square_output, 0.0, metrics=["mae"]), Recorder()
            history = self.fit(made, guests(log), max_lag=lag).history
            note(f"events {lag}", log=log.events, history=history)
        log, traces = Recorder(), []
        count = keras.callbacks.LambdaCallback(
            on_epoch_end=lambda epoch, logs: traces.append(len(TRACES))
        )
        self.fit(
            made, [*guests(log), count], validation_data=self._data, validation_steps=3
        )
        note("validation", log=log.events, traces=traces)

    def stops(self) -> None:
        made = self.model(mean_output, 0.1)
        for lag in (0, 4):
            ran: list[int] = []

            def stop(context: Any, values: Any, ran: list[int] = ran) -> None:
                ran.append(0)
                if len(ran) == 3:
                    context.request_stop()

            hooks, options = [Hook(after=stop)], {"epochs": 1, "steps_per_epoch": 60}
            self.fit(made, hooks, max_lag=lag, **options)
            note(f"stop {lag}", ran=len(ran))

    def rates(self) -> None:
        made, seen = self.model(mean_output, 0.125), []
        fed = iter([0.5, 0.5, 0.25, 0.25, 0.0, None] * EPOCHS)

        def feed(context: Any) -> Any:
            rate = next(fed)
            return v1.train.SessionRunArgs(
                "learning_rate:0", None if rate is None else {"learning_rate:0": rate}
            )

        self.fit(made, [Hook(feed, lambda c, v: seen.append(float(v.results)))])
        note("fed rate", bias=float(made.layers[1].bias.numpy()[0]), seen=seen)

    def rates_of_others(self) -> None:
        """Rates in a model whose step does not read that of `model.optimizer`."""
        for name in ("learning_rate:0", "second/learning_rate:0"):
            for feed in (None, 0.0):
                with self._strategy.scope():
                    made = TrainedByItsOwn()
                seen: list[float] = []
                error = ""
                asked = v1.train.SessionRunArgs(
                    name, None if feed is None else {name: feed}
                )

                def see(context: Any, values: Any, seen: list[float] = seen) -> None:
                    seen.append(float(values.results))

                try:
                    self.fit(made, [Hook(lambda context, asked=asked: asked, see)])
                except hb.errors.HookBridgeError as e:
                    error = str(e)
                bias = float(made.out.bias.numpy()[0])
                note(f"rate {name} {feed}", seen=seen, error=error, bias=bias)

    def schedules(self) -> None:
        """A rate by step, also where one call makes several steps."""
        for several in (1, 3):
            made = self.model(mean_output, 0.125, steps_per_execution=several)
            asked: list[int] = []

            def rate(step: int, asked: list[int] = asked) -> float:
                asked.append(step)
                return 0.5 if step < 3 else 0.25

            self.fit(made, [hb.callbacks.LearningRateScheduler(rate)])
            bias = float(made.layers[1].bias.numpy()[0])
            note(f"schedule {several}", asked=asked, bias=bias)

    def native_hooks(self) -> None:
        made = self.model(mean_output, 0.125)
        saver = v1.train.CheckpointSaverHook(str(FOLDER / "saved"), save_steps=4)
        lines: list[Any] = []
        final = hb.in_begin(
            lambda: v1.train.FinalOpsHook(v1.train.get_global_step() * 2)
        )
        hooks = [
            final,
            saver,
            v1.train.StepCounterHook(every_n_steps=3, output_dir=str(FOLDER / "rate")),
            v1.train.LoggingTensorHook(
                ["loss:0", "learning_rate:0"], 4, formatter=lines.append
            ),
            v1.train.NanTensorHook("loss:0"),
            SummaryHook(),
            v1.train.StopAtStepHook(num_steps=10),
        ]
        self.fit(made, hooks, max_lag=3)
        logged = [{k: float(v) for k, v in line.items()} for line in lines]
        twice = int(final.final_ops_values)
        note("native hooks", logged=logged, rate=0.125, twice=twice)
        # Saves by time: at any step, while other steps are in flight.
        timed = v1.train.CheckpointSaverHook(str(FOLDER / "timed"), save_secs=0.05)
        made = self.model(mean_output, 0.125)
        self.fit(made, [timed], epochs=1, steps_per_epoch=60)
        note("timed saves")

    def stock_callbacks(self) -> None:
        """The callbacks that Keras ships, and the error of plain Keras."""
        c = keras.callbacks
        plain = ""
        try:
            self.model(mean_output, 0.125).fit(
                self._data,
                steps_per_epoch=1,
                callbacks=[noting_callback(Recorder(), "plain")],
                verbose=0,
            )
        except ValueError as e:
            plain = str(e)
        ended: list[float] = []
        guests = [
            c.LearningRateScheduler(lambda epoch, rate: rate / (epoch + 1)),
            c.ReduceLROnPlateau("loss", factor=0.1, patience=10),
            c.EarlyStopping("loss", mode="max", patience=1),
            c.ModelCheckpoint(str(FOLDER / "stock-{batch:02d}.h5"), save_freq=3),
            c.CSVLogger(str(FOLDER / "stock.csv")),
            c.TerminateOnNaN(),
            c.TensorBoard(str(FOLDER / "board"), update_freq=2),
            c.LambdaCallback(
                on_batch_end=lambda batch, logs: ended.append(float(logs["mae"]))
            ),
            v1.train.StepCounterHook(3, output_dir=str(FOLDER / "also")),
        ]
        made = self.model(mean_output, 0.125, metrics=["mae"])
        self.fit(made, guests, epochs=9)
        note(
            "stock callbacks",
            plain=plain,
            epochs=len(made.history.epoch),
            batches=len(ended),
            bias=float(made.layers[1].bias.numpy()[0]),
        )

    def end_of_data(self) -> None:
        """A fit whose data end in the middle, with steps in flight."""
        log, error = Recorder(), ""
        saver = v1.train.CheckpointSaverHook(str(FOLDER / "ended"), save_steps=1000)
        data = keras.utils.experimental.DatasetCreator(
            lambda context: batches(context).take(9)
        )
        made = self.model(square_output, 0.0)
        callbacks = hb.as_callbacks([*guests(log), saver])
        try:
            made.fit(data, epochs=9, steps_per_epoch=4, verbose=0, callbacks=callbacks)
        except Exception as e:
            error = type(e).__name__
        note("ended", log=log.events, error=error)

    def several_steps(self) -> None:
        made, log = self.model(square_output, 0.0, steps_per_execution=3), Recorder()
        self.fit(made, guests(log), epochs=1)
        note("several steps", log=log.events)

    def inner_fit(self) -> None:
        made, ran = self.model(mean_output, 0.125), []

        def fit_too(epoch: int, logs: Any) -> None:
            if epoch == 0:
                made.fit(self._data, steps_per_epoch=3, verbose=0)

        inner = keras.callbacks.LambdaCallback(on_epoch_end=fit_too)
        self.fit(made, [inner, Hook(after=lambda c, v: ran.append(0))])
        note("inner fit", bias=float(made.layers[1].bias.numpy()[0]), ran=len(ran))

    def errors(self) -> None:
        mine = ValueError("mine")

        def fail(context: Any, values: Any) -> None:
            raise mine

        made, before = self.model(mean_output, 0.125), threading.enumerate()
        raised: list[BaseException] = []
        with tf.Graph().as_default():  # its writer needs one
            profiler = v1.train.ProfilerHook(save_steps=1, output_dir=str(FOLDER))
        for items in (
            [Hook(after=fail)],
            [Hook(lambda c: 1 / 0)],
            [profiler],
            [Hook(lambda c: v1.train.SessionRunArgs("no_such_tensor:0"))],
            [Hook(lambda c: v1.train.SessionRunArgs(None, options=trace()))],
        ):
            try:
                self.fit(made, items)
            except Exception as e:
                raised.append(e)
        ran: list[int] = []
        self.fit(made, [Hook(after=lambda c, v: ran.append(0))])
        try:
            made.evaluate(
                self._data, steps=1, callbacks=hb.as_callbacks([Hook()]), verbose=0
            )
        except Exception as e:
            raised.append(e)
        note(
            "errors",
            unchanged=raised[0] is mine,
            raised=[[type(e).__name__, str(e)] for e in raised],
            ran_after=len(ran),
            threads=[t.name for t in threading.enumerate() if t not in before],
        )


class SummaryHook(v1.train.SummarySaverHook):  # type: ignore[misc]
    """A stock summary hook whose summary is made in `begin`, as in a model_fn."""

    def __init__(self) -> None:
        super().__init__(
            save_steps=2,
            output_dir=str(FOLDER / "summaries"),
            scaffold=v1.train.Scaffold(),
        )

    def begin(self) -> None:
        graph = v1.get_default_graph()
        v1.summary.scalar("bridged_loss", graph.get_tensor_by_name("loss:0"))
        super().begin()
        self._scaffold.finalize()


def trace() -> Any:
    return v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)


def main() -> None:
    note("keras 3", message=REFUSED)
    job = Job(STRATEGY)
    job.events()
    job.rates()
    job.native_hooks()
    job.errors()
    if not tf.__version__.startswith("2.15"):  # whose tests are `one_tensorflow`
        job.rates_of_others()
        job.schedules()
        job.stock_callbacks()
        job.end_of_data()
        job.stops()
        job.several_steps()
        job.inner_fit()
    note("done")


if __name__ == "__main__":
    main()
