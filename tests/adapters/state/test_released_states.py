"""Files of released versions load: a job goes on from them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import released_states

from hookbridge.adapters.state import document

ONE_KERAS = True
VERSIONS = range(document.OLDEST, document.VERSION + 1)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_job_goes_on_from_the_files_of_a_release(
    keras: Any, tmp_path: Path, version: int
) -> None:
    """Its callbacks end as those of a job that nothing has interrupted."""
    shutil.copytree(released_states.FOLDER / str(version), tmp_path / "job")
    resumed, loop = released_states.run(keras, tmp_path / "job")
    whole, whole_loop = released_states.run(keras)
    assert resumed == whole
    assert resumed["number"] == 1.5 * 5  # `EarlyStopping` ends the fifth epoch
    assert loop.steps == whole_loop.steps
    for ours, theirs in zip(loop.weights, whole_loop.weights, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-5)


def test_each_version_has_files() -> None:
    kept = sorted(int(folder.name) for folder in released_states.FOLDER.iterdir())
    assert kept == list(VERSIONS)
    assert set(document.UPGRADES) == set(VERSIONS[:-1])


def write(folder: Path, version: int, **more: Any) -> str:
    plain = {"version": version, "step": 7, "callbacks": [], "loops": []}
    (folder / "model.ckpt-7.hookbridge.json").write_text(json.dumps(plain | more))
    return str(folder / "model.ckpt-7")


def test_a_file_goes_through_each_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, next_one = document.VERSION, document.VERSION + 1
    steps = {
        first: lambda old: old | {"loops": [*old["loops"], first]},
        next_one: lambda old: old | {"loops": [*old["loops"], next_one]},
    }
    monkeypatch.setattr(document, "VERSION", first + 2)
    monkeypatch.setattr(document, "UPGRADES", {**document.UPGRADES, **steps})
    read = document.read(write(tmp_path, first, loops=[1]), "hookbridge")
    assert read.loops == [1, first, next_one]


@pytest.mark.parametrize(
    ("version", "why"),
    [
        (document.VERSION + 1, "written by a newer hookbridge"),
        (document.OLDEST - 1, "which no release has written"),
    ],
)
def test_other_versions_are_named(tmp_path: Path, version: int, why: str) -> None:
    with pytest.raises(ValueError, match=f"version {version}, {why}"):
        document.read(write(tmp_path, version), "hookbridge")
