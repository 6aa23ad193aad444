"""Bad input to clusters and towers: the error, its words, and no step before it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from bad_calls import call, keras2

import hookbridge as hb
from hookbridge.jobs.loops import (
    ClusterConfig,
    GroupStopHook,
    LocalCluster,
    SessionCluster,
)
from hookbridge.jobs.loops.tasks.ports import lasting

v1 = tf.compat.v1
CLUSTER = {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}
NAN = math.nan
HUGE = 10**5000
strategy: Any = hb.loops.parameter_server_strategy
CALLS: dict[str, Callable[[Path], Any]] = {
    **{
        f"Received `grace_secs={value!r}`; expected a finite number": call(
            LocalCluster, grace_secs=value
        )
        for value in (NAN, -1, "5")
    },
    "`num_workers=99999999`; expected an integer from 0 to": call(
        LocalCluster, num_workers=99_999_999
    ),
    "`num_ps='2'`; expected an integer of at least 0": call(LocalCluster, num_ps="2"),
    "`chief='no'` of type `str`; expected a bool": call(LocalCluster, chief="no"),
    "the command 'python train.py', whose program cannot be found": call(
        LocalCluster().run, "python train.py"
    ),
    r"ClusterConfig.cluster is \['a:1'\]; expected an object of jobs": call(
        ClusterConfig, ["a:1"]
    ),
    r"ClusterConfig.cluster\['worker'\] is 'a:1'; expected a list of addresses": call(
        ClusterConfig, {"worker": "a:1"}
    ),
    r"ClusterConfig task\['type'\] is 3; expected one of": call(
        ClusterConfig, CLUSTER, 3, 0
    ),
    r"`model_fn` has the signature `\(x\)`; expected .*model_fn\(features, lab": call(
        hb.replicate_model_fn, lambda x: x
    ),
    "`checkpoint_dri=`, .*; the nearest: `checkpoint_dir=`": call(
        hb.loops.training_session, checkpoint_dri="x"
    ),
    "`session_config=5` of type `int`; expected a `ConfigProto`": call(
        SessionCluster, session_config=5
    ),
    "Received optimizer='adam'; expected an optimizer": call(hb.TowerOptimizer, "adam"),
    "num_towers=1000000000; expected at most 1024": call(hb.loops.tower_devices, 10**9),
    "devices=None; expected a list of device names": call(
        hb.loops.session_config, None
    ),
    "`model_dir=5` of type `int`; expected a path": lambda _: next(
        hb.loops.checkpoints_until_stop(5)  # type: ignore[arg-type]
    ),
    "`TF_CONFIG=None` of type `NoneType`; expected a JSON object": call(
        ClusterConfig.from_json, None
    ),
    "`environment=5` of type `int`; expected a mapping": call(
        ClusterConfig.from_environment, 5
    ),
    "`TF_CONFIG=5` of type `int`; expected text": call(
        ClusterConfig.from_environment, {"TF_CONFIG": 5}
    ),
    "`estimator=None` of type `NoneType`; expected a `tf.estimator.Estimator`": call(
        hb.loops.train_and_evaluate, None, None, None
    ),
    r"ClusterConfig task\['index'\] is 'first'; expected an integer": call(
        ClusterConfig, CLUSTER, "worker", "first"
    ),
}
NO_GUESTS: dict[str, Callable[[Path], Any]] = {
    "Received 5 of type `int`": call(strategy, guests=5),
    "hooks=5; expected a list of `SessionRunHook`s": call(hb.loops.training_session, 5),
    r"the class `StopAtStepHook`; .* It is at \[0\] of `hooks`": call(
        hb.loops.training_session, [v1.train.StopAtStepHook]
    ),
    "Convert it with `hb.as_hooks`": lambda _: hb.loops.training_session(
        [keras2().callbacks.History()]
    ),
}
OFTEN: list[tuple[str, Callable[[Path], Any]]] = [
    *(
        (
            f"Received `{name}={value!r}`; expected a finite number of seconds",
            call(function, **{name: value}),
        )
        for function in (SessionCluster, strategy)
        for name in ("lost_secs", "start_secs")
        for value in (NAN, math.inf, -1, "5", None, True)
    ),
    *(
        (
            "Received `config='localhost:2222'`; expected an .*ClusterConfig",
            call(function, "localhost:2222"),
        )
        for function in (SessionCluster, GroupStopHook, strategy)
    ),
    *(
        (r"an integer of 16610 bits`?; expected", refused)
        for refused in (
            call(hb.as_callbacks, [], max_lag=-HUGE),
            call(LocalCluster, num_workers=HUGE),
            call(hb.loops.tower_devices, HUGE),
            call(ClusterConfig, CLUSTER, "ps", HUGE),
            call(SessionCluster, lost_secs=HUGE),
        )
    ),
]


@pytest.mark.parametrize(("words", "refused"), [*CALLS.items(), *OFTEN])
def test_a_call_is_refused(words: str, refused: Any, tmp_path: Path) -> None:
    with pytest.raises(hb.errors.InvalidArgumentError, match=words):
        refused(tmp_path)


@pytest.mark.parametrize("words", NO_GUESTS)
def test_what_is_no_guest_is_refused(words: str, tmp_path: Path) -> None:
    with pytest.raises(hb.errors.NotAGuestError, match=words):
        NO_GUESTS[words](tmp_path)


def test_counts_may_be_numbers_without_a_fraction() -> None:
    assert hb.loops.tower_devices(2.0) == hb.loops.tower_devices(2)  # type: ignore[arg-type]
    assert len(LocalCluster(num_workers=2.0, num_ps=1.0).configs()) == 4  # type: ignore[arg-type]


def test_no_time_is_not_said() -> None:
    assert (lasting(0.0), lasting(2.5)) == ("", " for 2.5 s")
