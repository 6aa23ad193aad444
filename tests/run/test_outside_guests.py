"""Guests from outside join every training, as if the program had given them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from fork_server import ForkServer
from launching import IS_215, PROGRAMS, launch_fork

from hookbridge.errors import HookBridgeError
from hookbridge.old_programs.run.joining.guest_file import GuestFile
from hookbridge.old_programs.run.joining.joiner import Joiner

pytestmark = pytest.mark.slow

VISITED = PROGRAMS / "visited"
GUESTS = f"--guests={VISITED / 'guests.py'}"
Done = subprocess.CompletedProcess[str]


def run_in(folder: Path, launcher: ForkServer, *words: str) -> Done:
    """Runs a program in a new folder; it has to succeed."""
    folder.mkdir()
    done = launch_fork(launcher, *words, cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return done


def run_outside_and_inside(
    program: str, folder: Path, launcher: ForkServer, *flags: str
) -> tuple[Done, Done | None]:
    """Runs a program with guests from outside, and again with its own guests.

    One TensorFlow is enough for the second run: it is None on TF 2.15.
    """
    file = str(VISITED / program)
    outside = run_in(folder / "outside", launcher, GUESTS, *flags, file)
    if IS_215:
        return outside, None
    return outside, run_in(folder / "inside", launcher, file, "inside")


def csv_logs(folder: Path) -> dict[str, str]:
    return {
        str(file.relative_to(folder)): file.read_text()
        for file in sorted(folder.rglob("log.csv"))
    }


def of_training(done: Done, name: str) -> list[str]:
    """The lines printed in one training of a program, but for the making of guests."""
    text = done.stdout.partition(f"now {name}\n")[2].partition("now ")[0]
    return [line for line in text.splitlines() if "guest: made" not in line]


def launcher_lines(done: Done) -> list[str]:
    """The lines of the launcher, without the first one, which is about the world."""
    lines = [x for x in done.stderr.splitlines() if x.startswith("hookbridge run: ")]
    return lines[1:]


def test_sessions_and_estimators(
    subtests: pytest.Subtests, tmp_path: Path, launcher: ForkServer
) -> None:
    outside, inside = run_outside_and_inside(
        "old_loops.py", tmp_path, launcher, "--steps_per_epoch=4"
    )
    for name in ("estimator", "../session"):
        with subtests.test(str(name)):
            seen = of_training(outside, name)
            assert inside is None or seen == of_training(inside, name)
            assert "guest: training begins" in seen
            # The guest that stops the training has stopped it.
            assert len([x for x in seen if x.startswith("guest: epoch")]) == 2
    estimator = of_training(outside, "estimator")
    assert "val_loss=" in next(x for x in estimator if "guest: epoch 0" in x)
    assert "guest: hook ends after 8 runs" in estimator  # the training
    assert "guest: hook ends after 2 runs" in estimator  # the evaluation at its end
    assert "estimator ends at 8" in estimator
    logs = csv_logs(tmp_path / "outside")
    assert sorted(logs) == ["estimator/log.csv", "session/log.csv"]
    assert inside is None or logs == csv_logs(tmp_path / "inside")
    plain_steps = of_training(outside, "../plain")
    assert inside is None or plain_steps == of_training(inside, "../plain")
    # Guests are made anew for each of two trainings and an evaluation.
    assert outside.stdout.count("guest: made") == 3
    # The line is the program's, also if a library runs the session.
    plain, of_slim = launcher_lines(outside)
    for line, place in ((plain, "old_loops.py:101:"), (of_slim, "old_loops.py:109:")):
        with subtests.test(str(line)):
            assert "no guest joined `Session.run` in" in line
            assert place in line and "MonitoredTrainingSession" in line


def test_fit(
    subtests: pytest.Subtests, tmp_path: Path, bare_launcher: ForkServer
) -> None:
    outside, inside = run_outside_and_inside("new_loop.py", tmp_path, bare_launcher)
    for name in ("first", "second"):
        with subtests.test(str(name)):
            seen = of_training(outside, name)
            assert inside is None or seen == of_training(inside, name)
            assert len([x for x in seen if x.startswith("guest: epoch")]) == 2
            assert seen.count("guest: test begins") == 2
    logs = csv_logs(tmp_path / "outside")
    assert sorted(logs) == ["first/log.csv", "second/log.csv"]
    assert inside is None or logs == csv_logs(tmp_path / "inside")
    # Guests from outside do not change the automatic names of models.
    batches = of_training(outside, "batches")
    assert inside is None or batches == of_training(inside, "batches")
    assert outside.stdout.count("guest: made") == 2
    (line,) = launcher_lines(outside)
    assert "no guest joined `Model.train_on_batch` in" in line


def test_epochs_without_a_length_end_the_program(
    capsys: pytest.CaptureFixture[str],
) -> None:
    joiner = Joiner(GuestFile(str(VISITED / "guests.py")), None, bool)
    with pytest.raises(SystemExit, match="2"):
        joiner.hooks()
    said = capsys.readouterr().err.splitlines()[-1]
    assert "make an epoch: `--steps_per_epoch=<examples // batch size>`." in said
    assert "as_hooks" not in said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "does not exist; expected a Python file"),
        ("def guests(:", "raised SyntaxError"),
        ("guest = []", "has no `guests`; expected a list"),
    ],
)
def test_bad_files_of_guests(text: str | None, message: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    if text is not None:
        file.write_text(text)
    with pytest.raises(HookBridgeError, match=message):
        GuestFile(str(file))
