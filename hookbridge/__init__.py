"""One set of SessionRunHooks and Keras Callbacks, either training loop.

    import hookbridge as hb

    with tf.compat.v1.train.MonitoredTrainingSession(
        hooks=hb.as_hooks([tf.keras.callbacks.EarlyStopping("loss"), MyHook()],
                          steps_per_epoch=100)) as sess: ...

    model.fit(x, y, callbacks=hb.as_callbacks([MyHook(), "...any callback"]))

Importing this package does not import TensorFlow: the public names are looked
up on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hookbridge import compat, extras
from hookbridge.lazy import attach
from hookbridge.missing import tell_of_estimator_once_there

if TYPE_CHECKING:
    from hookbridge import callbacks as callbacks
    from hookbridge import checkpoints as checkpoints
    from hookbridge import contrib as contrib
    from hookbridge import data as data
    from hookbridge import errors as errors
    from hookbridge import estimator as estimator
    from hookbridge import loops as loops
    from hookbridge.adapters.callback_to_hook import CallbackToHook as CallbackToHook
    from hookbridge.adapters.convert import as_callbacks as as_callbacks
    from hookbridge.adapters.convert import as_hooks as as_hooks
    from hookbridge.adapters.guests.in_begin import in_begin as in_begin
    from hookbridge.adapters.guests.roles import set_role as set_role
    from hookbridge.adapters.hook_to_callback import HookToCallback as HookToCallback
    from hookbridge.explanation import explain as explain
    from hookbridge.loops.towers.replicate_model_fn import (
        TowerOptimizer as TowerOptimizer,
    )
    from hookbridge.loops.towers.replicate_model_fn import (
        replicate_model_fn as replicate_model_fn,
    )
    from hookbridge.profiling import profile as profile
    from hookbridge.report.recording import record as record

__version__ = "0.1.0"

__all__, _lookup = attach(globals())


def __getattr__(name: str) -> Any:
    try:
        value = _lookup(name)
    except ModuleNotFoundError as e:
        if e.name == "tensorflow":
            extras.check(e.name, f"`hookbridge.{name}`")
        raise
    tell_of_estimator_once_there()
    compat.tell_of_troubles()
    return value


# The error for a missing `tf.estimator` then says how to get it back.
tell_of_estimator_once_there()


def __dir__() -> list[str]:
    dunders = {name for name in globals() if name.startswith("__")}
    return sorted({*__all__, *dunders})
