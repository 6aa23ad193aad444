"""The files of a state: which belong together, and what may be in them."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from callback_recorder import callback_of
from state_runs import Holds, Killed, part_of, restored, save, state_of

from hookbridge import errors
from hookbridge.adapters.state import attributes, codec, document, storage
from hookbridge.adapters.state.files import StateFiles

ONE_KERAS = True


def test_killed_between_arrays_and_json(
    keras: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = str(tmp_path / "model.ckpt-3")
    one = Holds(keras)
    one.save(prefix, 3, 1.0)
    write = storage.write

    def killed(path: str, data: bytes) -> None:
        if path.endswith(".json"):
            raise Killed
        write(path, data)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(storage, "write", killed)
        one.save(prefix, 3, 2.0)
    two = Holds(keras)
    assert two.restore(prefix)
    np.testing.assert_array_equal(two.callback.kept, np.full(3, 1.0))
    one.save(prefix, 3, 2.0)
    assert two.restore(prefix)
    np.testing.assert_array_equal(two.callback.kept, np.full(3, 2.0))
    assert len(list(tmp_path.glob("*.npz"))) == 1  # old arrays are deleted


def test_arrays_of_another_state_are_refused(
    keras: Any, tmp_path: Path, absl_records: Any
) -> None:
    prefix = str(tmp_path / "model.ckpt-3")
    Holds(keras).save(prefix, 3, 1.0)
    (path,) = tmp_path.glob("*.npz")
    path.write_bytes(codec.to_bytes({"a0": np.full(3, 9.0)}))
    two = Holds(keras)
    assert not two.restore(prefix)
    np.testing.assert_array_equal(two.callback.kept, np.zeros(3))
    assert absl_records("its arrays belong to another state")


def test_clean_up_takes_names_exactly(keras: Any, tmp_path: Path) -> None:
    mine, other = tmp_path / "r*", tmp_path / "run1"
    for folder in (mine, other):
        folder.mkdir()
        (folder / "model.ckpt-1.hookbridge.json").write_text("{}")
    kept = ("model.ckpt-1x.hookbridge.json", "xmodel.ckpt-1.hookbridge.json")
    for name in kept:
        (mine / name).write_text("{}")
    save(Holds(keras).state, str(mine / "model.ckpt-2"), 2)
    assert (other / "model.ckpt-1.hookbridge.json").exists()
    assert sorted(p.name for p in mine.iterdir()) == sorted(
        [*kept, "model.ckpt-2.hookbridge.json"]
    )


def test_crafted_file_sets_no_configuration(keras: Any, tmp_path: Path) -> None:
    def on_epoch_end(self: Any, epoch: int, logs: Any = None) -> None:
        self.count += 1
        self.phase = "decay"
        self.found = 3  # does not exist before

    callback = callback_of(keras, on_epoch_end=on_epoch_end)
    vars(callback).update(cmd="ls", path=None, phase="warm", count=0)
    good = {"phase": "decay", "count": 4, "found": 3}
    bad: dict[str, Any] = {
        "cmd": "rm -r /",
        "path": "/etc/passwd",
        "model": "x",
        "params": {},
    }
    bad |= {"on_epoch_end": 3, "set_model": [1], "new": "x", "__class__": 1}
    entries = [{"class": "Functions", "state": bad | good}]
    (tmp_path / "model.ckpt-3.hookbridge.json").write_text(
        json.dumps({"version": 3, "step": 3, "callbacks": entries, "loops": []})
    )
    before = dict(vars(callback))
    assert restored(callback, str(tmp_path / "model.ckpt-3"))
    changed = {k: v for k, v in vars(callback).items() if before.get(k) != v}
    assert changed == good
    # Only attributes that would be stored are restored.
    stored = attributes.storable(callback).keys()
    assert stored >= changed.keys() and not stored & {"cmd", "path", "model", "new"}


_WRONG = {
    "null for a number": ("count", None),
    "a flag for a number": ("count", True),
    "a text for a number": ("count", "many"),
    "a text for an array": ("kept", "abc"),
    "a list for an array": ("kept", [1.0]),
    "a dict for a list": ("seen", {"x": 1}),
    "null for a list": ("seen", None),
}


@pytest.mark.parametrize("kind", _WRONG)
def test_a_value_of_another_kind_is_left_out_alone(
    keras: Any, tmp_path: Path, absl_records: Any, kind: str
) -> None:
    """A callback would fail with it in its first batch."""

    def on_epoch_end(self: Any, epoch: int, logs: Any = None) -> None:
        self.count, self.kept, self.seen = 1, np.ones(3), [1]

    prefix = str(tmp_path / "model.ckpt-3")
    name, value = _WRONG[kind]
    states = []
    for start in (5, 0):
        callback = callback_of(keras, on_epoch_end=on_epoch_end)
        vars(callback).update(count=0, kept=np.zeros(3), seen=[0])
        state = StateFiles()
        part = part_of(state, [callback])
        part.begin()
        states.append((callback, state, part))
        if start:
            vars(callback).update(count=5, kept=np.full(3, 5.0), seen=[5])
            save(state, prefix, 3)
            path = Path(f"{prefix}.hookbridge.json")
            written = json.loads(path.read_text())
            written["callbacks"][0]["state"][name] = value
            path.write_text(json.dumps(written))
    callback, state, part = states[1]
    saved = state.read(prefix)
    assert saved is not None
    part.restore(saved)
    now = {"count": callback.count, "kept": callback.kept.tolist()}
    now["seen"] = callback.seen
    restored_ones = {"count": 5, "kept": [5.0] * 3, "seen": [5]}
    begins_anew = {"count": 0, "kept": [0.0] * 3, "seen": [0]}
    assert now == {**restored_ones, name: begins_anew[name]}
    assert absl_records(f"`Functions.{name}` cannot be restored")


def test_a_callback_may_change_the_kind_of_its_value(
    keras: Any, tmp_path: Path
) -> None:
    def on_epoch_end(self: Any, epoch: int, logs: Any = None) -> None:
        self.count, self.seen = None, "all"

    prefix = str(tmp_path / "model.ckpt-3")
    callbacks = []
    for _ in range(2):
        callback = callback_of(keras, on_epoch_end=on_epoch_end)
        vars(callback).update(count=0, seen=[])
        callbacks.append(callback)
        state = StateFiles()
        part = part_of(state, [callback])
        part.begin()
        if len(callbacks) == 1:
            callback.on_epoch_end(0)
            save(state, prefix, 3)
            continue
        saved = state.read(prefix)
        assert saved is not None
        part.restore(saved)
    assert (callbacks[1].count, callbacks[1].seen) == (None, "all")


@pytest.mark.parametrize("name", ["hookbridge.json", "hookbridge.json.part"])
def test_a_folder_in_the_files_place(keras: Any, tmp_path: Path, name: str) -> None:
    prefix = str(tmp_path / "model.ckpt-3")
    Path(f"{prefix}.{name}").mkdir()
    with pytest.raises(errors.UnwritableError, match="a folder has that name"):
        Holds(keras).save(prefix, 3, 1.0)


def test_array_file_that_claims_more_than_it_has(tmp_path: Path) -> None:
    good = codec.to_bytes({"a0": np.arange(3.0)})
    np.testing.assert_array_equal(codec.from_bytes(good)["a0"], np.arange(3.0))
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a0.npy", bytes(10**7))
    with pytest.raises(ValueError, match="larger than their file"):
        codec.from_bytes(path.read_bytes())
    header = good.replace(b"(3,)", b"(9,)")
    with pytest.raises((ValueError, zipfile.BadZipFile)):
        codec.from_bytes(header)


@pytest.mark.parametrize("kind", ["fifo", "device", "folder", "arrays"])
def test_only_regular_files_are_read(
    keras: Any, tmp_path: Path, absl_records: Any, kind: str
) -> None:
    """To open a FIFO waits for a writer; `/dev/zero` never ends."""
    prefix = str(tmp_path / "model.ckpt-3")
    Holds(keras).save(prefix, 3, 1.0)
    path = Path(f"{prefix}.hookbridge.json")
    if kind == "arrays":
        (path,) = tmp_path.glob("*.npz")
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        os.mkfifo(path)
    assert not Holds(keras).restore(prefix)
    assert absl_records("is not a regular file")


def test_a_huge_list_is_not_even_parsed(
    keras: Any, tmp_path: Path, absl_records: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = str(tmp_path / "model.ckpt-3")
    with open(f"{prefix}.hookbridge.json", "wb") as file:
        file.write(b"[" + b"0," * (document.MOST_JSON_BYTES // 2) + b"0]")
    monkeypatch.setattr(json, "loads", pytest.fail)
    assert not Holds(keras).restore(prefix)
    assert absl_records(f"expected at most {document.MOST_JSON_BYTES}")


def test_state_that_is_too_large_is_left_out_by_name(
    keras: Any, tmp_path: Path, absl_records: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document, "MOST_JSON_BYTES", 2000)
    prefix = str(tmp_path / "model.ckpt-3")
    one, two = callback_of(keras), callback_of(keras)
    for each in (one, two):
        vars(each).update(words=[], numbers=[], count=0)
    state = state_of(one)
    one.words, one.numbers, one.count = ["word"] * 900, list(range(5000)), 7
    save(state, prefix, 3)
    assert restored(two, prefix)
    assert (two.words, two.count) == ([], 7)
    assert two.numbers == one.numbers  # many numbers are an array
    assert absl_records("`Functions.words` takes")


def test_part_file_follows_no_link(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("precious")
    path = tmp_path / "model.ckpt-3.hookbridge.json"
    (tmp_path / (path.name + ".part")).symlink_to(target)
    storage.write(str(path), b"{}")
    assert target.read_text() == "precious"
    assert path.read_text() == "{}" and not path.is_symlink()
