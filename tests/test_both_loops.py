"""The fixture `both_loops`, which users have for their own guests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from code_blocks import blocks
from fork_server import ForkServer

import hookbridge as hb

ONE_KERAS = True
TRAIN = tf.compat.v1.train


def test_guests_of_both_kinds_act_alike(both_loops: Any) -> None:
    def make(folder: Path) -> list[Any]:
        return [
            TRAIN.StopAtStepHook(num_steps=6),
            TRAIN.LoggingTensorHook(["loss:0"], every_n_iter=2),
            tf.keras.callbacks.CSVLogger(str(folder / "log.csv")),
        ]

    seen = both_loops(make, epochs=3)
    assert seen.fit.steps == len(seen.session.losses) == 6
    assert seen.session.files == ["log.csv"]
    assert any("loss:0 = " in line for line in seen.fit.lines)


def test_a_guest_is_made_once_for_each_loop(both_loops: Any) -> None:
    found: list[list[Path]] = []

    def make(folder: Path) -> Any:
        found.append(list(folder.iterdir()))
        (folder / "file").touch()
        return TRAIN.StopAtStepHook(num_steps=2)

    for _ in range(2):
        seen = both_loops(make)
    assert found == [[], [], [], []]
    for run in (seen.session, seen.fit):
        assert (run.steps, len(run.losses), run.files) == (2, 2, ["file"])
        assert [weight.shape for weight in run.weights] == [(2, 1), (1,)]
        assert isinstance(run.lines, list)


@pytest.mark.parametrize(
    ("make", "arguments", "says"),
    [
        (TRAIN.StopAtStepHook(num_steps=2), {}, "makes a new guest for each"),
        (lambda folder: TRAIN.StopAtStepHook(2), {"same": ("loss",)}, "losses, files"),
        (lambda folder: TRAIN.StopAtStepHook(2), {"epochs": 0}, "at least 1"),
        (lambda folder: TRAIN.StopAtStepHook(2), {"steps_per_epoch": 0}, "at least 1"),
    ],
)
def test_wrong_arguments_are_refused(
    make: Any, arguments: dict[str, Any], says: str, both_loops: Any
) -> None:
    with pytest.raises(hb.errors.InvalidArgumentError, match=says):
        both_loops(make, **arguments)


def test_a_difference_is_named(both_loops: Any) -> None:
    def make(folder: Path) -> Any:
        in_fit = folder.name == "fit"
        (folder / f"{folder.name}.txt").touch()
        return TRAIN.StopAtStepHook(num_steps=3 if in_fit else 2)

    with pytest.raises(AssertionError) as caught:
        both_loops(make)
    said = str(caught.value)
    assert said.startswith("The loops differ. steps: 2 in a session, 3 in fit; ")
    assert "files: ['session.txt'] in a session, ['fit.txt'] in fit" in said
    assert both_loops(make, same=("lines",)).fit.steps == 3


@pytest.mark.slow
@pytest.mark.one_tensorflow
def test_the_program_of_the_page(tmp_path: Path, fork_server: ForkServer) -> None:
    block, _ = blocks("docs/writing-guests.md", "python")
    assert len([line for line in block.text.splitlines() if line]) <= 15
    (tmp_path / "test_mine.py").write_text(block.text)
    words = ["-m", "pytest", "-q", "-p", "hookbridge.pytest_plugin", "test_mine.py"]
    done = fork_server.run(*words, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
