"""The benchmarks run, and refuse to compare cases that did different work."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from fork_server import ForkServer

from benchmarks import base

pytestmark = pytest.mark.slow

LOOPS = ("MonitoredTrainingSession", "training_session")
IN_LOOPS = [f"{n} in {loop}" for n in (0, 2) for loop in LOOPS]
GUESTS = ["0 hooks", "2 hooks, idle", "2 callbacks, acts seldom"]
# Benchmark -> small flags, and some of the cases of each part of its results.
BENCHMARKS: dict[str, tuple[Sequence[str], dict[str, Sequence[str]]]] = {
    "background_saves": (
        ("--megabytes=1", "--steps=4", "--repeats=1"),
        {"found": ["CheckpointSaverHook", "BackgroundSaverHook"]},
    ),
    "big_models": (
        ("--tiny", "--megabytes=1", "--steps=3"),
        {
            "weights": ["fit: none", "session: ModelCheckpoint, weights"],
            "first_steps": ["100,000 operations: and ModelCheckpoint"],
        },
    ),
    "bridge_overhead": (
        ("--steps=3", "--counts", "2"),
        {
            "session": [*GUESTS, "Session.make_callable"],
            "fit": [*GUESTS, "tf.function"],
            "loops": [*IN_LOOPS, "Session.make_callable"],
            "feeds": IN_LOOPS,
            "epochs": ["StopAtStepHook", "2 by epoch"],
        },
    ),
    "estimator": (("--steps=2",), {"cases": [LOOPS[0], "Estimator", "4 towers"]}),
    "fit_checkpoints": (
        ("--variables=3",),
        {"found": ["tf.train.Checkpoint", "CheckpointSaverHook"]},
    ),
    "hook_fetches": (
        ("--names=20", "--steps=3"),
        {"timings": [f"{loop}, hook" for loop in (LOOPS[0], "Model.fit")]},
    ),
    "reference_runs": (
        ("--steps=3",),
        {"timings": [f"{loop}, recorded" for loop in (LOOPS[0], "Model.fit")]},
    ),
    "soak": (
        ("--secs=0.2", "--steps=5"),
        dict.fromkeys(("session", "fit"), ("no guests", "10 guests")),
    ),
    "startup": (
        ("--loop=predict", "--tiny"),
        dict.fromkeys(
            ("predict, first", "predict, second"),
            ("native callback", "three stock hooks"),
        ),
    ),
}


@pytest.mark.parametrize(
    "name",
    [
        "hook_fetches",  # in both loops
        *(
            pytest.param(name, marks=pytest.mark.exhaustive)
            for name in BENCHMARKS
            if name != "hook_fetches"
        ),
    ],
)
def test_a_benchmark_runs(name: str, tmp_path: Path, fork_server: ForkServer) -> None:
    flags, parts = BENCHMARKS[name]
    results = tmp_path / "results.json"
    words = ("-m", f"benchmarks.{name}", "--repeats=1", f"--json={results}")
    done = fork_server.run(*words, *flags)
    assert done.returncode == 0, done.stderr
    assert "|---:|" in done.stdout or name == "hook_fetches"
    content = json.loads(results.read_text())
    for part, cases in parts.items():
        assert set(cases) <= set(content[part])
        for result in content[part].values():
            if "microsecs" in result:
                assert 0 < result["low"] <= result["microsecs"] <= result["high"]


@pytest.mark.exhaustive
def test_tower_speedup_runs(fork_server: ForkServer) -> None:
    flags = ("--width=8", "--batch_size=4", "--steps=2")
    done = fork_server.run("-m", "benchmarks.tower_speedup", *flags)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    assert [row[0] for row in rows] == ["1", "2"]
    assert rows[0][2] == "1.00" and all(float(row[1]) > 0 for row in rows)


def test_cases_alternate_and_the_first_repeat_is_dropped() -> None:
    order = []

    def case(name: str, secs: list[float]) -> base.Case:
        def run() -> base.Sample:
            order.append(name)
            return base.Sample(secs.pop(0), 1.0)

        return base.Case(name, run)

    timings = base.measure(
        [case("a", [9.0, 1e-6, 2e-6, 3e-6]), case("b", [9.0, 4e-6, 6e-6, 6e-6])],
        repeats=3,
    )
    assert order == list("abbaabba")
    assert timings["a"].microsecs == pytest.approx(2.0)
    assert timings["b"].high == pytest.approx(6.0)
    assert timings["b"].ratio_to(timings["a"]) == pytest.approx(3.0)


@pytest.mark.parametrize("loss", [1.01, float("nan")])
def test_unequal_losses_are_not_compared(loss: float) -> None:
    cases = [
        base.Case("a", lambda: base.Sample(1.0, 1.0)),
        base.Case("b", lambda: base.Sample(1.0, loss)),
    ]
    with pytest.raises(base.UnequalLossesError, match="`b` has the loss"):
        base.measure(cases, repeats=1)
