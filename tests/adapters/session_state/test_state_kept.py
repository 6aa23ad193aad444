"""State belongs to its checkpoint, whenever a process is killed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from callback_loops import STEPS, session_loop
from callback_recorder import callback_of, counting
from state_runs import Killed, document, options, patient

ONE_KERAS = True

v1: Any = tf.compat.v1


def set_back(folder: Path, step: int, logs: Any, **state: Any) -> None:
    """Changes the state beside a checkpoint to that of a step before."""
    path = folder / f"model.ckpt-{step}.hookbridge.json"
    found = document(path)
    found["loops"][0].update(step=step - 1, epoch_logs=logs)
    found["callbacks"][0]["state"].update(state)
    path.write_text(json.dumps(found))


def test_state_of_another_step_than_its_checkpoint(keras: Any, tmp_path: Path) -> None:
    """Other workers move the step on between the chief's step and its checkpoint."""
    session_loop([patient(keras)], max_steps=7, **options(tmp_path))
    logs = {"loss": [0.0, 0.0], "mae": [0.0, 0.0]}
    set_back(tmp_path, 7, logs)
    stopping = patient(keras)
    session_loop([stopping], max_steps=1, **options(tmp_path))
    whole = patient(keras)
    session_loop([whole], max_steps=8)
    assert stopping.wait == whole.wait > 0


def test_epoch_that_others_have_ended_is_ended_after_a_restart(
    keras: Any, tmp_path: Path
) -> None:
    session_loop([patient(keras)], max_steps=2 * STEPS, **options(tmp_path))
    # The state as it was before the events of the epoch's last step.
    logs = {"loss": [8.0, 2.0], "mae": [1.0, 1.0]}
    set_back(tmp_path, 2 * STEPS, logs, wait=5)
    seen: list[Any] = []
    ends = callback_of(
        keras,
        on_epoch_begin=lambda _, epoch, logs: seen.append(("begin", epoch)),
        on_epoch_end=lambda _, epoch, logs: seen.append(("end", epoch, logs["loss"])),
    )
    stopping = patient(keras)
    session_loop([stopping, ends], max_steps=1, **options(tmp_path))
    assert seen[:3] == [("begin", 1), ("end", 1, 4.0), ("begin", 2)]
    assert stopping.wait == 7  # 5, the ended epoch, and the one that this run began


def test_killed_in_the_events_after_a_checkpoint(keras: Any, tmp_path: Path) -> None:
    def kill(self: Any, epoch: int, logs: Any) -> None:
        if epoch == 2:
            raise Killed

    with pytest.raises(Killed):
        guests = [callback_of(keras, on_epoch_end=kill), patient(keras)]
        session_loop(guests, **options(tmp_path))
    latest = tf.train.latest_checkpoint(str(tmp_path))
    assert latest.endswith(f"-{3 * STEPS}")
    stopping, whole = patient(keras), patient(keras)
    session_loop(
        [keras.callbacks.Callback(), stopping], max_steps=1, **options(tmp_path)
    )
    session_loop([whole], max_steps=3 * STEPS + 1)
    assert stopping.wait == whole.wait > 1


def test_state_is_there_before_its_checkpoint(
    keras: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[tuple[bool, bool]] = []
    save = v1.train.Saver.save

    def spied(
        self: Any, session: Any, path: str, global_step: Any = None, **kw: Any
    ) -> Any:
        prefix = f"{path}-{global_step}"
        state, index = (
            os.path.exists(prefix + s) for s in (".hookbridge.json", ".index")
        )
        found.append((state, index))
        return save(self, session, path, global_step, **kw)

    monkeypatch.setattr(v1.train.Saver, "save", spied)
    session_loop([patient(keras)], max_steps=4, **options(tmp_path))
    # The saver's hook saves the initial values before any callback knows a session.
    assert found[0] == (False, False)
    assert found[1:] and set(found[1:]) == {(True, False)}
    assert (tmp_path / "model.ckpt-0.hookbridge.json").exists()


def test_checkpoint_without_state_is_reported(
    keras: Any, tmp_path: Path, absl_records: Any
) -> None:
    session_loop([patient(keras)], max_steps=4, **options(tmp_path))
    assert not absl_records("has no state of callbacks")
    (tmp_path / "model.ckpt-4.hookbridge.json").unlink()
    session_loop([patient(keras)], max_steps=1, **options(tmp_path))
    assert absl_records("model.ckpt-4 has no state of callbacks")


def test_live_object_keeps_what_it_has_counted(keras: Any, tmp_path: Path) -> None:
    counts, stopping = counting(keras), patient(keras)
    for _ in range(5):
        session_loop([counts, stopping], max_steps=STEPS, **options(tmp_path, 100))
    assert (counts.begins, counts.ends, counts.batches) == (5, 5, 5 * STEPS)
    # Keras's own callbacks reset themselves in `on_train_begin`; their state goes on.
    whole = patient(keras)
    session_loop([whole], max_steps=5 * STEPS, epochs=20)
    assert stopping.wait == whole.wait
    # A new object gets the saved state; an older checkpoint would set an object back.
    fresh = counting(keras)
    session_loop([fresh, patient(keras)], max_steps=1, **options(tmp_path, 100))
    assert fresh.batches == 5 * STEPS + 1
