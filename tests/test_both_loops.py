"""The fixture `both_loops`, which users have for their own guests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from code_blocks import blocks
from fork_server import ForkServer

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
    (block,) = blocks("docs/testing-guests.md", "python")
    assert len([line for line in block.text.splitlines() if line]) <= 15
    (tmp_path / "test_mine.py").write_text(block.text)
    words = ["-m", "pytest", "-q", "-p", "hookbridge.pytest_plugin", "test_mine.py"]
    done = fork_server.run(*words, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
