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

import importlib
from typing import TYPE_CHECKING, Any

from hookbridge.ground import compat
from hookbridge.ground.imports import extras
from hookbridge.ground.imports.lazy import attach

if TYPE_CHECKING:
    from hookbridge import checkpoints as checkpoints
    from hookbridge import contrib as contrib
    from hookbridge import errors as errors
    from hookbridge import estimator as estimator
    from hookbridge import legacy as legacy
    from hookbridge import old_programs as old_programs
    from hookbridge import testing as testing
    from hookbridge.adapters.callback_to_hook import CallbackToHook as CallbackToHook
    from hookbridge.adapters.convert import as_callbacks as as_callbacks
    from hookbridge.adapters.convert import as_hooks as as_hooks
    from hookbridge.adapters.guests.in_begin import in_begin as in_begin
    from hookbridge.adapters.guests.roles import set_role as set_role
    from hookbridge.adapters.hook_to_callback import HookToCallback as HookToCallback
    from hookbridge.ground.validation import Validation as Validation
    from hookbridge.ground.validation import ValidationReport as ValidationReport
    from hookbridge.insight.explanation import explain as explain
    from hookbridge.insight.guest_profile import profile as profile
    from hookbridge.insight.report.recording import record as record
    from hookbridge.jobs import callbacks as callbacks
    from hookbridge.jobs import data as data
    from hookbridge.jobs import loops as loops
    from hookbridge.jobs.loops.towers.replicate_model_fn import (
        TowerOptimizer as TowerOptimizer,
    )
    from hookbridge.jobs.loops.towers.replicate_model_fn import (
        replicate_model_fn as replicate_model_fn,
    )
    from hookbridge.reference.comparison import compare as compare
    from hookbridge.reference.ports.port import recording as recording
    from hookbridge.reference.ports.replay import replay as replay
    from hookbridge.reference.record.recorder import recorder as recorder

__version__ = "0.1.0"

__all__, _lookup, __dir__ = attach(
    __name__,
    {
        "CallbackToHook": "hookbridge.adapters.callback_to_hook",
        "HookToCallback": "hookbridge.adapters.hook_to_callback",
        "TowerOptimizer": "hookbridge.jobs.loops.towers.replicate_model_fn",
        "Validation": "hookbridge.ground.validation",
        "ValidationReport": "hookbridge.ground.validation",
        "as_callbacks": "hookbridge.adapters.convert",
        "as_hooks": "hookbridge.adapters.convert",
        "callbacks": "hookbridge.jobs",
        "checkpoints": "hookbridge",
        "compare": "hookbridge.reference.comparison",
        "contrib": "hookbridge",
        "data": "hookbridge.jobs",
        "errors": "hookbridge",
        "estimator": "hookbridge",
        "explain": "hookbridge.insight.explanation",
        "in_begin": "hookbridge.adapters.guests.in_begin",
        "legacy": "hookbridge",
        "loops": "hookbridge.jobs",
        "old_programs": "hookbridge",
        "profile": "hookbridge.insight.guest_profile",
        "record": "hookbridge.insight.report.recording",
        "recorder": "hookbridge.reference.record.recorder",
        "recording": "hookbridge.reference.ports.port",
        "replay": "hookbridge.reference.ports.replay",
        "replicate_model_fn": "hookbridge.jobs.loops.towers.replicate_model_fn",
        "set_role": "hookbridge.adapters.guests.roles",
        "testing": "hookbridge",
    },
)


def __getattr__(name: str) -> Any:
    try:
        value = _lookup(name)
    except ModuleNotFoundError as e:
        if e.name == "tensorflow":
            extras.check(e.name, user=f"`hookbridge.{name}`")
        raise
    compat.tell_of_troubles()
    globals()[name] = value
    return value


def load_ipython_extension(shell: object) -> None:
    """`%load_ext hookbridge`, which IPython calls with its shell."""
    live = importlib.import_module("hookbridge.old_programs.run.live_notebook")
    live.load_ipython_extension(shell)
