"""The benchmarks run, and refuse to compare cases that did different work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fork_server import ForkServer

from benchmarks import base, bridge_overhead, fit_checkpoints, many_guests, startup

pytestmark = pytest.mark.slow


def test_bridge_overhead_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results.json"
    code = bridge_overhead.main(["--steps=3", "--repeats=1", f"--json={results}"])
    assert code == 0
    content = json.loads(results.read_text())
    guests = [f"{n} {kind}" for n in (0, 1, 10) for kind in ("callbacks", "hooks")]
    assert set(content["session"]) == {*guests, "Session.make_callable"}
    assert set(content["fit"]) == {*guests, "tf.function"}
    loops = ("MonitoredTrainingSession", "training_session")
    in_loops = {f"{n} in {loop}" for n in (0, 1, 10) for loop in loops}
    assert set(content["loops"]) == {*in_loops, "Session.make_callable"}
    assert set(content["feeds"]) == in_loops
    assert set(content["epochs"]) == {"StopAtStepHook", "1 by epoch", "10 by epoch"}
    parts = ("session", "epochs", "loops", "feeds", "fit")
    for timing in (t for part in parts for t in content[part].values()):
        assert 0 < timing["low"] <= timing["microsecs"] <= timing["high"]
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("| 10 | ") for line in lines) == 4


def test_many_guests_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results.json"
    flags = ["--counts", "0", "2", "--steps=3", "--repeats=1", f"--json={results}"]
    many_guests.main(flags)
    content = json.loads(results.read_text())
    for part in ("session", "fit"):
        for kind in many_guests.KINDS:
            for side in ("native", "bridged"):
                assert content[part][f"{kind}, {side}: 2"]["microsecs"] > 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("| idle, bridged | ") for line in lines) == 2


def run_apart(server: ForkServer, tmp_path: Path, name: str, *flags: str) -> Any:
    """Runs a benchmark that forks, in a process of its own; returns its results."""
    results = tmp_path / "results.json"
    file = Path(base.__file__).with_name(f"{name}.py")
    done = server.run(str(file), "--repeats=1", f"--json={results}", *flags)
    assert done.returncode == 0, done.stderr
    return json.loads(results.read_text())


def test_big_models_run(fork_server: ForkServer, tmp_path: Path) -> None:
    flags = ("--tiny", "--megabytes=1", "--steps=3")
    content = run_apart(fork_server, tmp_path, "big_models", *flags)
    for loop in ("fit", "session"):
        for guest in ("none", "ModelCheckpoint, weights", "History"):
            (result,) = content["weights"][f"{loop}: {guest}"]
            assert result["secs"] > 0 and result["epochs"] == 3
    for model in ("1,000 variables", "100,000 operations"):
        (result,) = content["first_steps"][f"{model}: and ModelCheckpoint"]
        assert result["secs"] > 0


def test_hook_fetches_run(fork_server: ForkServer, tmp_path: Path) -> None:
    flags = ("--names=20", "--steps=3")
    timings = run_apart(fork_server, tmp_path, "hook_fetches", *flags)["timings"]
    for loop in ("MonitoredTrainingSession", "Model.fit"):
        assert timings[f"{loop}, hook"]["microsecs"] > 0


def test_soak_runs(fork_server: ForkServer, tmp_path: Path) -> None:
    content = run_apart(fork_server, tmp_path, "soak", "--secs=3", "--steps=5")
    for loop in ("session", "fit"):
        for guests in ("no guests", "10 guests"):
            assert content[loop][guests]["last"]["threads"] > 0


def test_tower_speedup_runs(fork_server: ForkServer) -> None:
    file = Path(base.__file__).with_name("tower_speedup.py")
    flags = ("--width=8", "--batch_size=4", "--steps=2")
    done = fork_server.run(str(file), *flags)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    assert [row[0] for row in rows] == ["1", "2"]
    assert rows[0][2] == "1.00" and all(float(row[1]) > 0 for row in rows)


def test_estimator_runs(fork_server: ForkServer, tmp_path: Path) -> None:
    cases = run_apart(fork_server, tmp_path, "estimator", "--steps=2")["cases"]
    for name in ("MonitoredTrainingSession", "Estimator", "4 towers"):
        assert cases[name][0]["per_step"] > 0
    assert cases["50 steps and an evaluation"][0]["per_round"] > 0


def test_startup_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results.json"
    flags = ["--loop=predict", "--tiny", "--repeats=1", f"--json={results}"]
    assert startup.main(flags) == 0
    content = json.loads(results.read_text())
    for loop in ("first", "second"):
        timings = content[f"predict, {loop}"].values()
        assert [t["microsecs"] > 0 for t in timings] == [True] * 4
    assert "| three stock hooks | " in capsys.readouterr().out


def test_fit_checkpoints_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results.json"
    flags = ["--variables=3", "--repeats=1", f"--json={results}"]
    assert fit_checkpoints.main(flags) == 0
    content = json.loads(results.read_text())
    assert set(content["cost"]) == {"tf.train.Checkpoint", "CheckpointSaverHook"}
    assert "| CheckpointSaverHook | " in capsys.readouterr().out


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


@pytest.mark.parametrize("flag", ["--steps=0", "--repeats=-1"])
def test_bad_flag_is_refused(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        bridge_overhead.main([flag])
    assert caught.value.code == 2
    assert "have to be 1 or more" in capsys.readouterr().err
