"""Functions of TensorFlow and Keras whose local variables are read while they run.

What such a function holds is in no object that a guest can reach. A frame that is not
there means that the function does not run, which is usual; a function or a local that
has another name is an error. `tests/test_private_frames.py` looks for each on every
supported version.
"""

from __future__ import annotations

import functools
import inspect
import sys
import traceback
import types
from typing import Any, NamedTuple

from hookbridge.errors import PrivateNameMovedError
from hookbridge.ground.imports.installed import KERAS


class PrivateFrame(NamedTuple):
    """A function of TensorFlow or Keras, and the names in it that are read.

    The path is `"module:function"`; a function within a function follows a dot, another
    name of the same thing a `|`. Names are arguments, local variables, and those of the
    function around it.
    """

    path: str
    names: tuple[str, ...]
    why: str

    @property
    def module(self) -> str:
        """The module of the function."""
        return self.path.partition(":")[0]


_AVERAGES = "the averages of a `fit` in a v1 graph that a hook stops"
_LOOP = "whether a loop of a model runs"
# The second name is that of Keras 3.16.
_KERAS_3_TRAINER = "keras.src.backend.tensorflow.trainer:TensorFlowTrainer|Trainer"


def _keras_2_frames(place: str, *names: str, why: str) -> tuple[PrivateFrame, ...]:
    """Return a row for `keras` 2.15 and one for `tf_keras`."""
    return tuple(
        PrivateFrame(f"{keras}.src.engine.{place}", names, why) for keras in KERAS
    )


# Each key has one row for each module that the function may be in.
FRAMES: dict[str, tuple[PrivateFrame, ...]] = {
    "estimator_train": (
        PrivateFrame(
            "tensorflow_estimator.python.estimator.estimator"
            ":Estimator._train_with_estimator_spec",
            ("estimator_spec",),
            "the loss and the saver that a `model_fn` returned",
        ),
    ),
    "estimator_data": (
        PrivateFrame(
            "tensorflow_estimator.python.estimator.estimator"
            ":Estimator._train_model_default",
            ("features", "labels"),
            "the names of an Estimator's features, which are in no graph",
        ),
    ),
    "evaluate_once": (
        PrivateFrame(
            "tensorflow.python.training.evaluation:_evaluate_once",
            ("final_ops", "eval_ops"),
            "the names of an Estimator's `eval_metric_ops`, which are in no graph",
        ),
    ),
    "monitored_training_session": (
        PrivateFrame(
            "tensorflow.python.training.monitored_session:MonitoredTrainingSession",
            ("checkpoint_dir",),
            "where the checkpoints of a worker's session are",
        ),
    ),
    "create_session": (
        PrivateFrame(
            "tensorflow.python.training.monitored_session"
            ":_MonitoredSession._CoordinatedSessionCreator.create_session",
            ("self",),
            "the hooks of a session, some of which save into the same folder",
        ),
    ),
    "graph_fit_arrays": _keras_2_frames(
        "training_arrays_v1:model_iteration",
        "aggregator",
        "step",
        "batch_end",
        why=_AVERAGES,
    ),
    "graph_fit_generator": _keras_2_frames(
        "training_generator_v1:model_iteration", "aggregator", "step", why=_AVERAGES
    ),
    # The model is looked for as the first argument, whatever its name is.
    **{
        loop: (
            *_keras_2_frames(f"training:Model.{loop}", "self", why=_LOOP),
            *_keras_2_frames(f"training_v1:Model.{loop}", "self", why=_LOOP),
            PrivateFrame(f"{_KERAS_3_TRAINER}.{loop}", ("self",), _LOOP),
        )
        for loop in ("fit", "evaluate", "predict")
    },
    "keras_2_data": tuple(
        row
        for loop in ("fit", "evaluate", "predict")
        for row in _keras_2_frames(
            f"training:Model.{loop}", "data_handler", why="the end of a loop's data"
        )
    ),
    "callback_list": tuple(
        PrivateFrame(
            f"{keras}.src.callbacks:CallbackList.{event}",
            ("self",),
            "all callbacks of a loop, to save and restore their states",
        )
        for keras in KERAS
        for event in ("set_model", "on_train_begin", "on_test_begin")
    ),
    "set_attribute": (
        *_keras_2_frames(
            "base_layer:Layer.__setattr__",
            "name",
            why="whether a model gets the optimizer of a session",
        ),
        PrivateFrame(
            "keras.src.backend.tensorflow.trackable:KerasAutoTrackable.__setattr__",
            ("name",),
            "whether a model gets the optimizer of a session",
        ),
    ),
    "h5_optimizer": tuple(
        PrivateFrame(
            f"{module}:save_optimizer_weights_to_hdf5_group",
            ("optimizer",),
            "whether a model is saved that has the optimizer of a session",
        )
        for module in (
            *(f"{keras}.src.saving.legacy.hdf5_format" for keras in KERAS),
            "keras.src.legacy.saving.legacy_h5_format",
        )
    ),
    "keras3_step": (
        PrivateFrame(
            f"{_KERAS_3_TRAINER}._make_function.function",
            ("multi_step_on_iterator",),
            "the `tf.function` in the function that Keras 3 calls for each step",
        ),
    ),
    "keras3_one_step": (
        PrivateFrame(
            f"{_KERAS_3_TRAINER}._make_function.function",
            ("one_step_on_data",),
            "one step without the loop of Keras 3.16 around it",
        ),
    ),
}


def running_locals(*keys: str) -> dict[str, Any] | None:
    """Return the locals of the innermost function of `keys` that runs.

    None if none runs.
    """
    codes = {
        code_of(row): row
        for key in keys
        for row in FRAMES[key]
        if row.module in sys.modules
    }
    for frame, _ in traceback.walk_stack(sys._getframe(1)):
        if frame.f_code in codes:
            return dict(frame.f_locals)
    return None


def is_called_from(key: str) -> bool:
    """Return whether the caller was called by the module of a function of `FRAMES`."""
    caller = sys._getframe(2).f_globals.get("__name__")
    return caller in [row.module for row in FRAMES[key]]


def closure_of(key: str, function: Any) -> dict[str, Any] | None:
    """Return what a function closes over, if it is the one of `key`."""
    for row in FRAMES[key]:
        name = row.path.rpartition(".")[2]
        if (function.__module__, function.__name__) == (row.module, name):
            _check(row, function.__code__)
            return dict(inspect.getclosurevars(function).nonlocals)
    return None


@functools.cache
def code_of(row: PrivateFrame) -> types.CodeType:
    """Return the code of a row's function, with all names of the row in it."""
    __import__(row.module)
    owner: Any = sys.modules[row.module]
    for name in row.path.partition(":")[2].split("."):
        inner = [
            const
            for const in getattr(owner, "co_consts", ())
            if isinstance(const, types.CodeType) and const.co_name == name
        ]
        attributes = [getattr(owner, attribute, None) for attribute in name.split("|")]
        part = inner[0] if inner else next(filter(None, attributes), None)
        owner = inspect.unwrap(part) if callable(part) else part
        owner = getattr(owner, "__code__", owner)
    if not isinstance(owner, types.CodeType):
        raise _moved(row, "the running version does not have there")
    _check(row, owner)
    return owner


def _check(row: PrivateFrame, code: types.CodeType) -> None:
    variables = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
    missing = [name for name in row.names if name not in variables]
    if missing:
        raise _moved(row, f"has no `{'`, `'.join(missing)}` here")


def _moved(row: PrivateFrame, what: str) -> PrivateNameMovedError:
    return PrivateNameMovedError(
        f"hookbridge needs `{row.path}` ({row.why}), which {what}. Use a TensorFlow "
        "version listed in the README or report this version."
    )
