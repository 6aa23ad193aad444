"""`run`, `doctor` and `rewrite` say the same of random programs of idioms."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from fork_server import ForkServer
from idioms import IDIOMS, files_of
from launching import ON_NEWEST, launch_fork

from hookbridge import old_programs as migrate
from hookbridge.old_programs.names.target import NEWEST
from hookbridge.old_programs.scanning import diagnosis

LIVING = [name for name, idiom in IDIOMS.items() if idiom.runs]
DEAD = [name for name, idiom in IDIOMS.items() if not idiom.runs]


def write(folder: Path, names: list[str]) -> Path:
    for file, text in files_of(names).items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)
    return folder / "main.py"


def has_doubts(main: Path) -> bool:
    """Whether doctor leaves something of a program to a person."""
    found = diagnosis.diagnose([main], NEWEST)
    return bool(found.left or found.absent or found.missing)


@pytest.mark.parametrize("name", IDIOMS)
def test_doctor_and_rewrite_know_each_idiom(name: str, tmp_path: Path) -> None:
    main = write(tmp_path, [name])
    assert has_doubts(main) is not IDIOMS[name].runs, files_of([name])
    texts = files_of([name]).values()
    left = [todo for text in texts for todo in migrate.rewrite(text).todos]
    # A rewrite does not look into other libraries.
    in_libraries = ("a name that a library lacks", "a module that a library lacks")
    assert bool(left) is (not IDIOMS[name].runs and name not in in_libraries)


@ON_NEWEST
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_what_doctor_is_content_with_runs(
    seed: int, tmp_path: Path, launcher: ForkServer
) -> None:
    names = random.Random(seed).sample(LIVING, k=len(LIVING) - 3)
    main = write(tmp_path, names)
    assert not has_doubts(main)
    done = launch_fork(launcher, "main.py", cwd=tmp_path)
    if done.returncode:
        for name in names:  # the smallest program that shows it
            folder = tmp_path / name
            write(folder, [name])
            alone = launch_fork(launcher, "main.py", cwd=folder)
            assert alone.returncode == 0, (files_of([name]), alone.stderr[-1500:])
    assert done.returncode == 0, (files_of(names), done.stderr[-1500:])


@ON_NEWEST
@pytest.mark.slow
@pytest.mark.parametrize("name", DEAD)
def test_what_doctor_leaves_to_a_person_does_not_run(
    name: str, tmp_path: Path, launcher: ForkServer
) -> None:
    some = random.Random(name).sample(LIVING, k=3)
    main = write(tmp_path, [*some, name])
    assert has_doubts(main)
    assert launch_fork(launcher, "main.py", cwd=tmp_path).returncode != 0
