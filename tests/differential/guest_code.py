"""Random lists of stock guests, as Python expressions that a program can contain.

The expressions use these names: `k`, a Keras; `v1`, `train`, `hb`; `folder`, a path;
and `G`, this module, which ends with guests as users write them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from hypothesis import strategies as st

v1: Any = tf.compat.v1
train: Any = v1.train

MONITORS = ("loss", "mae", "val_loss", "val_mae")


def _call(name: str, *args: Any, **options: st.SearchStrategy[Any]) -> Any:
    """A call of `name` with some of the options, each drawn."""
    optional = {key: st.none() | value for key, value in options.items()}
    return st.fixed_dictionaries(optional).map(lambda drawn: _code(name, args, drawn))


def _code(name: str, args: Any, options: dict[str, Any]) -> str:
    words = [*args]
    for key, value in options.items():
        if value is not None:
            raw = isinstance(value, _Raw)
            words.append(f"{key}={value if raw else repr(value)}")
    return f"{name}({', '.join(words)})"


class _Raw(str):
    """An expression, not a text."""


def _files(pattern: str) -> st.SearchStrategy[str]:
    """A path in the folder; two guests of a list may name the same one."""
    return st.integers(0, 2).map(
        lambda n: f"str(folder / '{pattern}')".replace("#", str(n))
    )


_monitor = st.sampled_from(MONITORS)
_delta = st.sampled_from([0.0, 1e-3, 0.5, 10.0])
_patience = st.integers(0, 3)
_mode = st.sampled_from(["auto", "min", "max"])

CALLBACKS: st.SearchStrategy[str] = st.one_of(
    _call(
        "k.callbacks.EarlyStopping",
        monitor=_monitor,
        min_delta=_delta,
        patience=_patience,
        mode=_mode,
        baseline=st.sampled_from([0.1, 1.0]),
        restore_best_weights=st.booleans(),
        start_from_epoch=st.integers(0, 2),
    ),
    _call(
        "k.callbacks.ReduceLROnPlateau",
        monitor=_monitor,
        factor=st.sampled_from([0.1, 0.5, 0.9]),
        patience=_patience,
        mode=_mode,
        min_delta=_delta,
        cooldown=st.integers(0, 2),
        min_lr=st.sampled_from([0.0, 0.02]),
    ),
    st.sampled_from(
        [
            "k.callbacks.LearningRateScheduler(lambda epoch: 0.2 / (1 + epoch))",
            "k.callbacks.LearningRateScheduler(lambda epoch, lr: float(lr) * 0.7)",
            "k.callbacks.TerminateOnNaN()",
            "k.callbacks.History()",
            "k.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: "
            "logs.update(double=2 * logs['loss']))",
        ]
    ),
    _files("log#.csv").flatmap(
        lambda path: _call("k.callbacks.CSVLogger", path, append=st.booleans())
    ),
    _files("w#-{epoch}.weights.h5").flatmap(
        lambda path: _call(
            "k.callbacks.ModelCheckpoint",
            path,
            "save_weights_only=True",
            monitor=_monitor,
            mode=_mode,
            save_best_only=st.booleans(),
            save_freq=st.sampled_from(["epoch", 2, 4]),
        )
    ),
    st.tuples(
        st.sampled_from(
            [
                "on_epoch_begin",
                "on_epoch_end",
                "on_train_batch_begin",
                "on_train_batch_end",
                "on_test_end",
                "on_train_begin",
            ]
        ),
        st.integers(1, 6),
        st.sampled_from(["stop", "rate", "fail", "weights"]),
    ).map(lambda drawn: "G.acting(k, {!r}, {}, {!r})".format(*drawn)),
)

HOOKS: st.SearchStrategy[str] = st.one_of(
    st.integers(1, 11).map(lambda n: f"train.StopAtStepHook(last_step={n})"),
    st.integers(1, 11).map(lambda n: f"train.StopAtStepHook(num_steps={n})"),
    _call(
        "train.LoggingTensorHook",
        "{'loss': 'loss:0', 'rate': 'learning_rate:0'}",
        every_n_iter=st.integers(1, 6).map(lambda n: _Raw(n)),
        at_end=st.just(False),
    ).filter(lambda code: "every" in code),
    st.booleans().map(lambda fails: f"train.NanTensorHook('loss:0', {fails})"),
    st.tuples(st.integers(0, 1), st.integers(1, 6)).map(
        lambda drawn: (
            "train.CheckpointSaverHook(str(folder / 'c{}'), save_steps={})".format(
                *drawn
            )
        )
    ),
    st.tuples(st.integers(0, 1), st.integers(1, 6)).map(
        lambda drawn: (
            "train.StepCounterHook({1}, output_dir=str(folder / 's{0}'))".format(*drawn)
        )
    ),
    st.tuples(st.integers(0, 1), st.integers(1, 6)).map(
        lambda drawn: "hb.in_begin(G.summaries(str(folder / 'e{}'), {}))".format(*drawn)
    ),
    st.sampled_from([0.0, 0.05, 0.5]).map(
        lambda rate: f"train.FeedFnHook(lambda: {{'learning_rate:0': {rate}}})"
    ),
    st.just("hb.in_begin(lambda: train.FinalOpsHook(train.get_global_step() + 0))"),
    st.just("train.GlobalStepWaiterHook(0)"),
    st.tuples(
        st.sampled_from(["before_run", "after_run"]),
        st.integers(1, 11),
        st.sampled_from(["request_stop", "StopIteration", "OutOfRange", "ValueError"]),
    ).map(lambda drawn: "G.ending({!r}, {}, {!r})".format(*drawn)),
)


def acting(keras: Any, event: str, count: int, action: str) -> Any:
    """A callback that acts at the `count`-th call of an event, and counts the calls."""

    class Acting(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

    def act(self: Any, *args: Any) -> None:
        self.calls += 1
        if self.calls != count:
            return
        if action == "stop":
            self.model.stop_training = True
        elif action == "rate":
            self.model.optimizer.learning_rate = 0.01
        elif action == "weights":
            self.model.set_weights([0.5 * w for w in self.model.get_weights()])
        else:
            raise ValueError(f"{event}, call {count}")

    setattr(Acting, event, lambda self, *args, **_: act(self, *args))
    return Acting()


def ending(event: str, count: int, action: str) -> Any:
    """A hook that ends the run in the `count`-th call of an event."""
    failures: dict[str, Exception] = {
        "StopIteration": StopIteration(),
        "OutOfRange": tf.errors.OutOfRangeError(None, None, "over"),
        "ValueError": ValueError(f"{event}, call {count}"),
    }

    class Ending(train.SessionRunHook):  # type: ignore[misc]
        def __init__(self) -> None:
            self.calls = 0

    def act(self: Any, run_context: Any, *args: Any) -> None:
        self.calls += 1
        if self.calls == count:
            if action == "request_stop":
                run_context.request_stop()
            else:
                raise failures[action]

    setattr(Ending, event, act)
    return Ending()


def summaries(directory: str, every_steps: int) -> Callable[[], Any]:
    """Makes a `SummarySaverHook` of the loss, for `hb.in_begin`."""

    def make() -> Any:
        loss = v1.get_default_graph().get_tensor_by_name("loss:0")
        return train.SummarySaverHook(
            save_steps=every_steps,
            output_dir=directory,
            summary_op=v1.summary.scalar("seen_loss", loss),
        )

    return make
