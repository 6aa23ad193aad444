"""`BackgroundSaverHook` leaves what `CheckpointSaverHook` does, killed or not.

Each host trains twice, with either hook, and what is in the folders is compared.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from background_trainings import (
    LAST_STEP,
    SAVE_STEPS,
    TRAININGS,
    Listener,
    guests_of,
    left_in,
)
from fork_server import ForkServer
from one_keras import one_keras

import hookbridge as hb

v1: Any = tf.compat.v1


@one_keras
@pytest.mark.parametrize("train", TRAININGS)
def test_it_leaves_the_same_files(train: Any, keras: Any, tmp_path: Path) -> None:
    left, events = [], []
    make: Any
    for make in (v1.train.CheckpointSaverHook, hb.checkpoints.BackgroundSaverHook):
        folder = tmp_path / make.__name__
        listener = Listener(folder)
        saver = make(str(folder), save_steps=SAVE_STEPS, listeners=[listener])
        train(keras, folder, guests_of(keras, saver))
        left.append(left_in(folder))
        events.append(listener.events)
    assert left[0] == left[1]
    assert events[0] == events[1]
    assert len(events[0]) == 2 + 2 * 8  # at steps 0, 5, ... 30 and 33
    assert not any(value for key, value in left[0].items() if key.startswith("in step"))


PROGRAM = """
import os, signal, sys, threading, time
import tensorflow as tf
import hookbridge as hb
import background_trainings as t
from hookbridge.adapters.session_graph import saved

keras = tf.keras
train, folder = getattr(t, sys.argv[1]), t.Path(sys.argv[2])
last_step, last_write, secs = int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
write, written = saved.write, []

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def slowly(prefix, values):
    written.append(prefix)
    if len(written) == last_write:
        if not secs:
            die()
        timer = threading.Timer(secs, die)
        timer.daemon = True
        timer.start()
    # A kill meets an unfinished save often.
    time.sleep(0.03)
    return write(prefix, values)

saved.write = slowly

class Slow(tf.compat.v1.train.SessionRunHook):
    def after_run(self, run_context, run_values):
        time.sleep(0.01)

saver = hb.checkpoints.BackgroundSaverHook(str(folder), save_steps=t.SAVE_STEPS)
# The saver comes last: before the callbacks, a kill between it and them would lose the
# end of the batch, as the page on restarts says.
_, *others = t.guests_of(keras, saver, Slow(), last_step=last_step)
train(keras, folder, [*others, saver])
"""


@pytest.fixture
def killed(tmp_path: Path, fork_server: ForkServer) -> Callable[..., int]:
    """Runs a training in a process that may be killed; returns its exit code."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    tests = Path(__file__).parent
    folders = (tests / "helpers", tests / "adapters" / "helpers")

    def run(train: str, folder: str, death: tuple[int, float], last_step: int) -> int:
        done = fork_server.run(
            *(str(program), train, str(tmp_path / folder), str(last_step)),
            *map(str, death),
            PYTHONPATH=os.pathsep.join(map(str, folders)),
        )
        assert done.returncode in (0, -9), done.stderr
        return done.returncode

    return run


NEVER = 0, 0.0
# In which write of a process it dies, and so many seconds after the write began. The
# first death is certain, and comes after a whole save.
DEATHS = [(2, 0.0), (3, 0.01), (2, 0.04), (1, 0.07), (2, 0.1)]


def compare_checkpoint(ours: dict[str, Any], theirs: dict[str, Any], name: str) -> None:
    """Compares variables and state of a checkpoint in what two trainings have left."""
    keys = [key for key in theirs if name in key]
    assert len(keys) > 3 and keys == [key for key in ours if name in key]
    for key in keys:
        if key.startswith(("state", "in step")):
            assert ours[key] == theirs[key], key
        else:
            np.testing.assert_allclose(ours[key], theirs[key], rtol=1e-6, err_msg=key)


@pytest.mark.slow
def test_session_killed_in_saves(tmp_path: Path, killed: Callable[..., int]) -> None:
    """Killed again and again, the training ends as an undisturbed one."""
    assert killed("in_session", "whole", NEVER, LAST_STEP) == 0
    codes = [killed("in_session", "killed", death, LAST_STEP) for death in DEATHS]
    if codes[-1]:
        assert killed("in_session", "killed", NEVER, LAST_STEP) == 0
    assert -9 in codes
    whole, parts = (left_in(tmp_path / each) for each in ("whole", "killed"))
    compare_checkpoint(parts, whole, f"model.ckpt-{LAST_STEP}")


@pytest.mark.slow
def test_fit_killed_in_a_save(tmp_path: Path, killed: Callable[..., int]) -> None:
    """Each checkpoint that is left is that of an undisturbed training.

    Unless its state says that the callbacks had not had all of the step. A `fit` that
    goes on in mid-epoch has other epochs, so it is not compared to its end.
    """
    last_step = 18  # all checkpoints are kept
    assert killed("in_fit", "whole", NEVER, last_step) == 0
    whole = left_in(tmp_path / "whole")
    codes, compared = [], 0
    for number, death in enumerate(DEATHS):
        folder = f"killed-{number}"
        codes.append(killed("in_fit", folder, death, last_step))
        if not (tmp_path / folder / "checkpoint").exists():
            continue
        parts = left_in(tmp_path / folder)
        for name in parts["kept"]:
            if not parts[f"in step {name}"]:
                compare_checkpoint(parts, whole, name)
                compared += 1
    assert -9 in codes and compared
