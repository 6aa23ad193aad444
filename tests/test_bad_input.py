"""Bad input to every public entry point: the error, its words, and no step before it.

Errors name what they received. `tests/cli/test_bad_files.py` has those of commands.
"""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tensorflow as tf

import hookbridge as hb
from hookbridge import compat
from hookbridge.arguments import lasting
from hookbridge.loops import ClusterConfig, GroupStopHook, LocalCluster, SessionCluster

v1 = tf.compat.v1
INVALID = hb.errors.InvalidArgumentError


def keras2() -> Any:
    return importlib.import_module(
        "tf_keras" if compat.tf_version() > (2, 15) else "keras"
    )


class NoRepr:
    """An object whose `__repr__` fails."""

    def __repr__(self) -> str:
        raise ValueError("no text")


class FailingAttributes:
    """An object that fails when it is asked for a method."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("no attributes")


class Loop:
    """A session loop; `options(loop)` gives the options of its `as_hooks`.

    Attributes:
      steps: how many steps were made.
    """

    def __init__(self, options: Callable[[Loop], Mapping[str, Any]]) -> None:
        self.steps = 0
        with tf.init_scope():
            self.eager = tf.constant(1.0)
            self.eager_model = keras2().Sequential([keras2().layers.Dense(1)])
            self.eager_model.build((None, 2))
        with tf.Graph().as_default():
            x = v1.get_variable("x", [], initializer=v1.ones_initializer())
            self.loss = tf.identity(x**2, name="loss")
            self.vector = tf.constant([0.1, 0.2], name="vector")
            self.text = tf.constant("text", name="text")
            step = v1.train.get_or_create_global_step()
            self.op = v1.train.GradientDescentOptimizer(0.1).minimize(self.loss, step)
            self.run({"steps_per_epoch": 2, "logs": {}, **options(self)})

    def run(self, options: Mapping[str, Any]) -> None:
        callback = keras2().callbacks.LambdaCallback(on_epoch_end=lambda *_: None)
        hooks = hb.as_hooks([callback], **options)
        with v1.train.MonitoredSession(hooks=hooks) as session:
            for _ in range(4):
                session.run(self.op)
                self.steps += 1


def log(spec: Callable[[Loop], Any], key: str = "acc") -> Callable[[Loop], Any]:
    return lambda loop: {"logs": {key: spec(loop)}}


SESSION: dict[str, tuple[Callable[[Loop], Mapping[str, Any]], str]] = {
    "logs_none": (log(lambda _: None), r"logs\['acc'\] is None; expected a tensor"),
    "logs_op": (log(lambda loop: loop.op), r"logs\['acc'\] is <tf.Operation .*exp"),
    "logs_vector": (
        log(lambda loop: loop.vector),
        r"logs\['acc'\] is `vector:0` .*shape \(2,\); expected a scalar",
    ),
    "logs_text": (
        log(lambda loop: loop.text),
        r"logs\['acc'\] is `text:0` of type string .*expected a scalar",
    ),
    "logs_pair_of_vectors": (
        log(lambda loop: (loop.vector, loop.vector)),
        r"logs\['acc'\] is .*shape \(2,\); expected a scalar",
    ),
    "logs_eager": (
        log(lambda loop: loop.eager),
        r"logs\['acc'\] is <tf.Tensor.* expected a tensor of the training graph",
    ),
    "logs_with_arguments": (
        log(lambda _: lambda x: x),
        r"`logs\['acc'\]` is the function .*\(x\)`; expected .*without arguments",
    ),
    "logs_empty_key": (log(lambda loop: loop.loss, ""), "`logs` has the key ''; exp"),
    "logs_val_key": (
        log(lambda loop: loop.loss, "val_acc"),
        "`logs` has the key 'val_acc'; expected .*`validation=`",
    ),
    "validation_text": (
        lambda _: {"validation": "accuracy"},
        "`validation` is 'accuracy'; expected a function",
    ),
    "validation_with_arguments": (
        lambda _: {"validation": lambda model, data: {"loss": 1.0}},
        r"`validation` is the function .*\(model, data\)`; expected .*without arg",
    ),
    "validation_run": (
        lambda _: {"validation": SimpleNamespace(run=lambda self: {})},
        r"`validation.run` has the signature `\(self\)`; expected `run\(session, rep",
    ),
    "model_class": (
        lambda _: {"model": keras2().Model},
        "`model` is <class .*expected the tf.keras or tf_keras model",
    ),
    "model_layer": (
        lambda _: {"model": keras2().layers.Dense(1)},
        "`model` is .*; expected the tf.keras or tf_keras model",
    ),
    "model_with_arguments": (
        lambda _: {"model": lambda graph: None},
        r"`model` is the function .*\(graph\)`; expected .* without arguments",
    ),
    "learning_rate_vector": (
        lambda loop: {"learning_rate": loop.vector},
        r"`learning_rate` is `vector:0` .*shape \(2,\); expected a scalar",
    ),
    "learning_rate_text": (
        lambda loop: {"learning_rate": "text"},
        "`learning_rate` is `text:0` of type string .*expected a scalar",
    ),
    "learning_rate_eager": (
        lambda loop: {"learning_rate": loop.eager},
        "`learning_rate` is <tf.Tensor.* expected a tensor or variable of the",
    ),
    "model_eager": (
        lambda loop: {"model": loop.eager_model},
        "`model` is .* is not in the graph of this session. Build the model inside",
    ),
}


@pytest.mark.parametrize("case", SESSION)
def test_options_of_a_session_are_refused_before_its_first_step(case: str) -> None:
    options, words = SESSION[case]
    loops: list[Loop] = []

    def noted(loop: Loop) -> Mapping[str, Any]:
        loops.append(loop)
        return options(loop)

    with pytest.raises(INVALID, match=words):
        Loop(noted)
    assert loops[0].steps == 0


@pytest.mark.parametrize("result", ["text", {"a": "text"}, {1: 1.0}, None])
def test_a_validation_is_told_what_it_returns_when_it_has_run(result: Any) -> None:
    # Only a call can show what a function returns.
    words = f"`validation=` returned {re.escape(repr(result))}; expected a dict"
    with pytest.raises(INVALID, match=words):
        Loop(lambda _: {"validation": lambda: result})


CLUSTER = {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}
NAN = math.nan


def checkpoint(folder: Path) -> Path:
    """A checkpoint with a truncated index."""
    path = folder / "model.ckpt"
    tf.train.Checkpoint(x=tf.Variable(1.0)).write(str(path))
    index = path.with_suffix(".ckpt.index")
    index.write_bytes(index.read_bytes()[:10])
    return path


def damaged_records(folder: Path) -> str:
    path = folder / "broken.tfrecord"
    path.write_bytes(b"no records at all")
    return str(path)


def model() -> Any:
    made = keras2().Sequential([keras2().layers.Dense(1)])
    made.build((None, 2))
    return made


def whole_checkpoint(folder: Path) -> str:
    return str(tf.train.Checkpoint(x=tf.Variable(1.0)).write(str(folder / "whole")))


def itself() -> Any:
    guests: list[Any] = []
    guests.append([guests])
    return guests


def call(function: Any, *args: Any, **options: Any) -> Callable[[Path], Any]:
    return lambda _: function(*args, **options)


restore: Any = hb.checkpoints.restore


def restore_damaged(state: bytes) -> Callable[[Path], Any]:
    """Restores a folder whose file `checkpoint` is not what a saver wrote."""

    def call(folder: Path) -> Any:
        (folder / "checkpoint").write_bytes(state)
        return restore(model(), str(folder))

    return call


strategy = hb.loops.parameter_server_strategy
HUGE: dict[str, tuple[Any, dict[str, Any]]] = {
    "max_lag": (hb.as_callbacks, {"items": [], "max_lag": -(10**5000)}),
    "num_workers": (LocalCluster, {"num_workers": 10**5000}),
    "num_towers": (hb.loops.tower_devices, {"num_towers": 10**5000}),
    "task_index": (
        ClusterConfig,
        {"cluster": CLUSTER, "task_type": "ps", "task_index": 10**5000},
    ),
    "lost_secs": (SessionCluster, {"lost_secs": 10**5000}),
}
CALLS: dict[str, tuple[Callable[[Path], Any], type[Exception], str]] = {
    "restore_none": (lambda _: restore(model(), None), INVALID, "checkpoint=None; exp"),
    "restore_number": (lambda _: restore(model(), 5), INVALID, "checkpoint=5; exp"),
    "restore_nowhere": (lambda _: restore(model(), "/no"), INVALID, "no checkpoint at"),
    "restore_truncated": (
        lambda folder: restore(model(), str(checkpoint(folder))),
        INVALID,
        r"The checkpoint .*model\.ckpt cannot be read; expected",
    ),
    **{
        f"restore_{name}_state": (
            restore_damaged(state),
            INVALID,
            r"/checkpoint is damaged: .*Expected .*`model_checkpoint_path: ",
        )
        for name, state in {
            "text": b"no proto {",
            "binary": b"\xff\xfe\0",
            "empty": b"",
            "gone": b'model_checkpoint_path: "model.ckpt-7"',
        }.items()
    },
    "restore_unknown_name": (
        lambda folder: restore(
            model(), whole_checkpoint(folder), names={"dense/kernal": "x"}
        ),
        INVALID,
        "`names` has `dense/kernal`, which is no variable .*nearest: `dense.*/kernel`",
    ),
    "restore_names": (
        lambda folder: restore(model(), whole_checkpoint(folder), names=["x"]),
        INVALID,
        r"`names=\['x'\]`; expected",
    ),
    "restore_model": (
        lambda folder: restore(None, whole_checkpoint(folder)),
        INVALID,
        "model=None; expected a built Keras model",
    ),
    "list_in_itself_session": (
        lambda _: hb.as_hooks(itself()),
        hb.errors.NotAGuestError,
        r"a list that contains itself, at \[0\]\[0\]",
    ),
    "list_in_itself_explain": (
        lambda _: hb.explain(itself()),
        hb.errors.NotAGuestError,
        "a list that contains itself",
    ),
    **{
        f"{function.__name__}_{name}_{value}": (
            call(function, **{name: value}),
            INVALID,
            f"Received `{name}={value!r}`; expected a finite number of seconds",
        )
        for function in (SessionCluster, strategy)
        for name in ("lost_secs", "start_secs")
        for value in (NAN, math.inf, -1, "5", None, True)
    },
    **{
        f"local_cluster_{value}": (
            call(LocalCluster, grace_secs=value),
            INVALID,
            f"Received `grace_secs={value!r}`; expected a finite number",
        )
        for value in (NAN, -1, "5")
    },
    **{
        f"config_{function.__name__}": (
            call(function, "localhost:2222"),
            INVALID,
            "Received `config='localhost:2222'`; expected a .*ClusterConfig",
        )
        for function in (SessionCluster, GroupStopHook, strategy)
    },
    "local_cluster_workers": (
        call(LocalCluster, num_workers=99_999_999),
        INVALID,
        "`num_workers=99999999`; expected an integer from 0 to",
    ),
    "local_cluster_no_number": (
        call(LocalCluster, num_ps="2"),
        INVALID,
        "`num_ps='2'`; expected an integer of at least 0",
    ),
    "local_cluster_none": (
        call(LocalCluster, num_workers=None),
        INVALID,
        "`num_workers=None`; expected an integer",
    ),
    "local_cluster_chief": (
        call(LocalCluster, chief="no"),
        INVALID,
        "`chief='no'`; expected a bool",
    ),
    "local_cluster_command": (
        call(LocalCluster().run, "python train.py"),
        INVALID,
        "the command 'python train.py', whose program cannot be found",
    ),
    "config_cluster": (
        call(ClusterConfig, ["a:1"]),
        INVALID,
        r"ClusterConfig.cluster is \['a:1'\]; expected an object of jobs",
    ),
    "config_hosts": (
        call(ClusterConfig, {"worker": "a:1"}),
        INVALID,
        r"ClusterConfig.cluster\['worker'\] is 'a:1'; expected a list of addresses",
    ),
    "config_task_type": (
        call(ClusterConfig, CLUSTER, 3, 0),
        INVALID,
        r"ClusterConfig task\['type'\] is 3; expected one of",
    ),
    **{
        f"guest_without_repr_{function.__name__}": (
            call(function, [NoRepr()]),
            hb.errors.NotAGuestError,
            "Received <NoRepr instance at .*> of type `NoRepr`; expected",
        )
        for function in (hb.as_hooks, hb.as_callbacks, hb.explain)
    },
    **{
        f"number_of_5000_digits_{case}": (
            call(function, **options),
            INVALID,
            "an integer of 16610 bits`?; expected",
        )
        for case, (function, options) in HUGE.items()
    },
    **{
        f"value_without_repr_{case}": (
            call(function, *args),
            INVALID,
            "<NoRepr instance at .*expected",
        )
        for case, (function, args) in {
            "role": (hb.set_role, (v1.train.StopAtStepHook(last_step=1), NoRepr())),
            "host": (hb.explain, ([], NoRepr())),
            "cluster": (ClusterConfig, (NoRepr(),)),
            "in_begin": (hb.in_begin, (NoRepr(),)),
            "model_fn": (hb.replicate_model_fn, (NoRepr(),)),
            "optimizer": (hb.TowerOptimizer, (NoRepr(),)),
            "devices": (hb.loops.session_config, (NoRepr(),)),
            "stop_fn": (hb.callbacks.EarlyStopper, (NoRepr(),)),
        }.items()
    },
    **{
        f"function_of_{name}": (
            call(function, lambda: None),
            INVALID,
            rf"`{name}` is the function .*\(\)`; expected .*called as `{name}\(",
        )
        for name, function in {
            "stop_fn": hb.callbacks.EarlyStopper,
            "schedule": hb.callbacks.LearningRateScheduler,
            "process_fn": hb.callbacks.PredictionOutputsProcessor,
            "summaries_fn": hb.callbacks.SummaryWriter,
        }.items()
    },
    "model_fn_signature": (
        call(hb.replicate_model_fn, lambda x: x),
        INVALID,
        r"`model_fn` has the signature `\(x\)`; expected .*model_fn\(features, lab",
    ),
    "guest_with_failing_attributes": (
        call(hb.as_hooks, [FailingAttributes()]),
        hb.errors.NotAGuestError,
        "of type `FailingAttributes`; expected",
    ),
    "strategy_guests": (
        call(strategy, guests=5),
        hb.errors.NotAGuestError,
        "Received 5 of type `int`",
    ),
    "progress_steps": (
        call(hb.callbacks.Progress, last_step="5"),
        INVALID,
        "`last_step='5'`; expected an integer",
    ),
    "rows_format": (
        call(hb.data.Rows, __file__, format="csv"),
        INVALID,
        "format='csv'; expected 'text', 'tfrecord' or None",
    ),
    "pipeline_label": (
        lambda _: hb.data.Pipeline(
            hb.data.Rows(__file__), print, batch_size=2, label=2
        ),
        INVALID,
        "the column 2 in `locations` or `label`; .* one of 2 `columns`",
    ),
    "records_damaged": (
        lambda folder: hb.data.Rows(damaged_records(folder)).count(),
        INVALID,
        "broken.tfrecord is no TFRecord file; expected whole records",
    ),
    "own_loop_optimizer": (
        lambda _: hb.loops.OwnLoop([], model=model(), optimizer="adam"),
        INVALID,
        "optimizer='adam'; expected the optimizer that",
    ),
    "session_cluster_config": (
        call(SessionCluster, session_config=5),
        INVALID,
        "`session_config=5` of type `int`; expected a `ConfigProto`",
    ),
    "in_begin_with_arguments": (
        call(hb.in_begin, lambda graph: None),
        INVALID,
        r"`make` is the function .*\(graph\)`; expected .* without arguments",
    ),
    "tower_optimizer": (
        call(hb.TowerOptimizer, "adam"),
        INVALID,
        "Received optimizer='adam'; expected an optimizer",
    ),
    "towers_many": (
        call(hb.loops.tower_devices, 10**9),
        INVALID,
        "num_towers=1000000000; expected at most 1024",
    ),
    "session_config_none": (
        call(hb.loops.session_config, None),
        INVALID,
        "devices=None; expected a list of device names",
    ),
    "session_config_base": (
        call(hb.loops.session_config, ["/cpu:0"], base={"a": 1}),
        INVALID,
        "`base={'a': 1}` of type `dict`; expected a .*ConfigProto",
    ),
    "checkpoints_of": (
        lambda _: next(hb.loops.checkpoints_until_stop(5)),  # type: ignore[arg-type]
        INVALID,
        "`model_dir=5` of type `int`; expected a path",
    ),
    "training_session_number": (
        call(hb.loops.training_session, 5),
        hb.errors.NotAGuestError,
        "hooks=5; expected a list of `SessionRunHook`s",
    ),
    "training_session_class": (
        call(hb.loops.training_session, [v1.train.StopAtStepHook]),
        hb.errors.NotAGuestError,
        r"the class `StopAtStepHook`; .* It is at \[0\] of `hooks`",
    ),
    "training_session_callback": (
        lambda _: hb.loops.training_session([keras2().callbacks.History()]),
        hb.errors.NotAGuestError,
        "Make hooks of it by `hb.as_hooks`",
    ),
    "uploader_url": (
        call(hb.callbacks.ModelUploader, 5),
        INVALID,
        "`remote_url=5` of type `int`; expected a folder or a URL",
    ),
    "exporter_path": (
        call(hb.callbacks.SavedModelExporter, 5),
        INVALID,
        "`path=5` of type `int`; expected a path",
    ),
    "rows_none": (
        call(hb.data.Rows, None),
        INVALID,
        "`files=None` of type `NoneType`; expected a path, or a list of paths",
    ),
    "rows_of_an_empty_folder": (
        lambda folder: hb.data.Rows(str(folder)),
        INVALID,
        "files with '.*', a folder without files; expected files",
    ),
    "tf_config_none": (
        call(ClusterConfig.from_json, None),
        INVALID,
        "`TF_CONFIG=None` of type `NoneType`; expected a JSON object",
    ),
    "environment_number": (
        call(ClusterConfig.from_environment, 5),
        INVALID,
        "`environment=5` of type `int`; expected a mapping",
    ),
    "environment_with_number": (
        call(ClusterConfig.from_environment, {"TF_CONFIG": 5}),
        INVALID,
        "`TF_CONFIG=5` of type `int`; expected text",
    ),
    "train_and_evaluate": (
        call(hb.loops.train_and_evaluate, None, None, None),
        INVALID,
        "`estimator=None` of type `NoneType`; expected a `tf.estimator.Estimator`",
    ),
    "config_task_index": (
        call(ClusterConfig, CLUSTER, "worker", "first"),
        INVALID,
        r"ClusterConfig task\['index'\] is 'first'; expected an integer",
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_call_is_refused(case: str, tmp_path: Path) -> None:
    call, error, words = CALLS[case]
    with pytest.raises(error, match=words):
        call(tmp_path)


def test_counts_may_be_numbers_without_a_fraction() -> None:
    assert hb.loops.tower_devices(2.0) == hb.loops.tower_devices(2)  # type: ignore[arg-type]
    assert len(LocalCluster(num_workers=2.0, num_ps=1.0).configs()) == 4  # type: ignore[arg-type]


def test_no_time_is_not_said() -> None:
    assert (lasting(0.0), lasting(2.5)) == ("", " for 2.5 s")
