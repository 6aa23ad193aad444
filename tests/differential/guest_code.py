"""Random lists of stock guests, as Python expressions that a program can contain.

The expressions use these names: `k`, a Keras; `v1`, `train`, `hb`; `folder`, a path;
and `G`, this module, which ends with guests as users write them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from callback_recorder import callback_of
from hook_fetching import hook_of
from hypothesis import strategies as st

v1: Any = tf.compat.v1
train: Any = v1.train

MONITORS = ("loss", "mae", "val_loss", "val_mae")


def _call(name: str, *args: str, **options: st.SearchStrategy[Any]) -> Any:
    """A call of `name` with some of the options, each drawn."""

    def code(drawn: dict[str, Any]) -> str:
        words = [f"{key}={v!r}" for key, v in drawn.items() if v is not None]
        return f"{name}({', '.join([*args, *words])})"

    optional = {key: st.none() | value for key, value in options.items()}
    return st.fixed_dictionaries(optional).map(code)


def _filled(template: str, *values: st.SearchStrategy[Any]) -> st.SearchStrategy[str]:
    """The template with drawn values; two guests of a list may name the same file."""
    return st.tuples(*values).map(lambda drawn: template.format(*drawn))


_monitor = st.sampled_from(MONITORS)
_delta = st.sampled_from([0.0, 1e-3, 0.5, 10.0])
_patience = st.integers(0, 3)
_mode = st.sampled_from(["auto", "min", "max"])
_number, _every, _last = st.integers(0, 1), st.integers(1, 6), st.integers(1, 11)
_events = "epoch_begin epoch_end train_batch_begin train_batch_end test_end train_begin"
_event = st.sampled_from([f"on_{event}" for event in _events.split()])
_action = st.sampled_from(["stop", "rate", "fail", "weights"])
_run = st.sampled_from(["before_run", "after_run"])
_end = st.sampled_from(["request_stop", "StopIteration", "OutOfRange", "ValueError"])

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
    _filled("str(folder / 'log{}.csv')", st.integers(0, 2)).flatmap(
        lambda path: _call("k.callbacks.CSVLogger", path, append=st.booleans())
    ),
    _filled("str(folder / 'w{}-{{epoch}}.weights.h5')", st.integers(0, 2)).flatmap(
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
    _filled("G.acting(k, {!r}, {}, {!r})", _event, _every, _action),
)

_LOGGED = "train.LoggingTensorHook({{'loss': 'loss:0', 'rate': 'learning_rate:0'}}, {})"
_FED = "train.FeedFnHook(lambda: {{'learning_rate:0': {}}})"
HOOKS: st.SearchStrategy[str] = st.one_of(
    _filled("train.StopAtStepHook(last_step={})", _last),
    _filled("train.StopAtStepHook(num_steps={})", _last),
    _filled(_LOGGED, _every),
    _filled("train.NanTensorHook('loss:0', {})", st.booleans()),
    _filled(
        "train.CheckpointSaverHook(str(folder / 'c{}'), save_steps={})", _number, _every
    ),
    _filled(
        "train.StepCounterHook({1}, output_dir=str(folder / 's{0}'))", _number, _every
    ),
    _filled("hb.in_begin(G.summaries(str(folder / 'e{}'), {}))", _number, _every),
    _filled(_FED, st.sampled_from([0.0, 0.05, 0.5])),
    st.just("hb.in_begin(lambda: train.FinalOpsHook(train.get_global_step() + 0))"),
    st.just("train.GlobalStepWaiterHook(0)"),
    _filled("G.ending({!r}, {}, {!r})", _run, _last, _end),
)


def acting(keras: Any, event: str, count: int, action: str) -> Any:
    """A callback that acts at the `count`-th call of an event, and counts the calls."""

    def act(self: Any, *args: Any, **_: Any) -> None:
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

    guest = callback_of(keras, **{event: act})
    guest.calls = 0
    return guest


def ending(event: str, count: int, action: str) -> Any:
    """A hook that ends the run in the `count`-th call of an event."""
    failures: dict[str, Exception] = {
        "StopIteration": StopIteration(),
        "OutOfRange": tf.errors.OutOfRangeError(None, None, "over"),
        "ValueError": ValueError(f"{event}, call {count}"),
    }

    def act(self: Any, run_context: Any, *args: Any) -> None:
        self.calls += 1
        if self.calls == count:
            if action == "request_stop":
                run_context.request_stop()
            else:
                raise failures[action]

    hook = hook_of("Ending", **{event: act})
    hook.calls = 0
    return hook


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
