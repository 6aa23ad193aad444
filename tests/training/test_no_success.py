"""Trainings that made no step, and trainings that a signal ends."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest
import tensorflow as tf
from commands import keras_of_graphs
from fork_server import ForkServer
from idle_clock import idle_secs
from test_bad_definitions import JOB, ROWS, in_graphs

from hookbridge.cli import main

pytestmark = pytest.mark.slow
LOOPS = ("fit", "estimator", "session")
EMPTY = """

def train_input_fn():
    data = tf.data.Dataset.from_tensors(([[1.0, 2.0]], [1]))
    return data.take(0)
"""
ENDS_EARLY = """

def train_input_fn():
    data = tf.data.Dataset.from_tensors(([[1.0, 2.0]], [1])).repeat(3)
    return data.filter(lambda *batch: True)  # its length is unknown
"""
DROPS_ALL = JOB.replace(
    "dataset.map(parse)", "dataset.map(parse).filter(lambda *x: False)"
)
BAD_ROWS = "1,x,0\n2,y,1\n"
# Rows, the file and its flags -> a part of the message.
CASES = {
    "empty": (ROWS, JOB + EMPTY, ["--train_steps=3"], "`train_input_fn` in"),
    "dropped": (ROWS, DROPS_ALL, ["--train_steps=3"], "of 4 rows of --train_files, 0"),
    "skipped": (BAD_ROWS, JOB, ["--bad_rows=skip", "--train_steps=3"],
                "of 2 rows of --train_files, 2 were skipped"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("loop", "case"),
    [*((loop, "empty") for loop in LOOPS), ("fit", "dropped"), ("session", "skipped")],
)
def test_a_training_without_a_step_is_no_success(
    loop: str, case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, text, flags, message = CASES[case]
    job, data = tmp_path / "job.py", tmp_path / "rows.csv"
    job.write_text(text if loop == "fit" else in_graphs(text))
    data.write_text(rows)
    words = [str(job), f"--loop={loop}", f"--model_dir={tmp_path / 'model'}", *flags]
    if case != "empty":
        words += [f"--train_files={data}", "--train_batch_size=2"]
    assert main(["train", *words]) == 2
    shown = capsys.readouterr()
    (line,) = (ln for ln in shown.err.splitlines() if "No step was made" in ln)
    assert message in line
    assert "trained to step" not in shown.out


def test_the_end_of_the_data_is_no_step(
    subtests: pytest.Subtests, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job, folder = tmp_path / "job.py", tmp_path / "model"
    job.write_text(JOB + ENDS_EARLY)
    words = [str(job), "--loop=fit", f"--model_dir={folder}", "--train_steps=9"]
    for step, said in [
        (3, "trained to step 3 with "),
        (6, "trained to step 6 (from step 3) with "),
        (9, "trained to step 9 (from step 6) with "),
        (9, f"nothing was left to train: {folder} is at step 9, and the training ends"),
    ]:
        with subtests.test(str(step)):
            assert main(["train", *words]) == 0
            out = capsys.readouterr().out
            assert said in out and f"global_step={step}" in out


NOTES_STEPS = """

def hooks(*, mode):
    class Notes(tf.compat.v1.train.SessionRunHook):
        steps = 0

        def after_run(self, run_context, run_values):
            self.steps += 1
            if self.steps == 2:  # only now all guests have seen the first step
                open({!r}, "w").close()

    return [Notes()]
"""


def _ended_by(
    number: int, loop: str, folder: Path, fork_server: ForkServer
) -> tuple[int, str]:
    """Trains until a signal comes after a step; returns exit code and output."""
    job, data, log = folder / "job.py", folder / "rows.csv", folder / "log"
    made_a_step = folder / "made_a_step"
    notes = NOTES_STEPS.format(str(made_a_step))
    job.write_text((JOB if loop == "fit" else in_graphs(JOB)) + notes)
    data.write_text(ROWS)
    words = [f"--loop={loop}", f"--train_files={data}", f"--model_dir={folder}/model"]
    words += ["--train_steps=10000000", "--train_batch_size=2", "--no_progress"]
    process = fork_server.start(
        ["-m", "hookbridge", "train", str(job), *words], keras_of_graphs(), log
    )
    began = idle_secs()
    while not made_a_step.exists():
        assert process.poll() is None and idle_secs() - began < 60
        time.sleep(0.1)
    os.kill(process.pid, number)
    return process.wait(), log.read_text()


@pytest.mark.parametrize("loop", LOOPS)
def test_sigterm_saves_and_the_exit_code_says_so(
    loop: str, tmp_path: Path, fork_server: ForkServer
) -> None:
    code, log = _ended_by(signal.SIGTERM, loop, tmp_path, fork_server)
    assert code == 143, log
    newest = tf.train.latest_checkpoint(str(tmp_path / "model"))
    assert tf.train.load_variable(newest, "global_step") > 0


@pytest.mark.parametrize("loop", ["fit", "session"])
def test_ctrl_c_says_what_is_saved(
    loop: str, tmp_path: Path, fork_server: ForkServer
) -> None:
    code, log = _ended_by(signal.SIGINT, loop, tmp_path, fork_server)
    assert code == 130, log
    (line,) = (x for x in log.splitlines() if x.startswith("hookbridge: train: "))
    newest = tf.train.latest_checkpoint(str(tmp_path / "model"))
    step = tf.train.load_variable(newest, "global_step")
    assert re.search(r": interrupted after step [1-9]\d*\. ", line)
    end = f" {newest} is saved: the same command goes on from step {step}."
    assert line.endswith(end)
