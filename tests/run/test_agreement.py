"""`run`, `doctor` and `rewrite` say the same of random programs of idioms."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import random_names
from fork_server import ForkServer
from idioms import IDIOMS, files_of
from launching import ON_NEWEST, launch_fork

from hookbridge import old_programs as migrate
from hookbridge.old_programs.reading.names.import_statements import (
    all_imports,
    canonical,
)
from hookbridge.old_programs.reading.names.named_uses import uses
from hookbridge.old_programs.reading.one_file.modules import Module
from hookbridge.old_programs.rewriting import file_rewrites
from hookbridge.old_programs.scanning import diagnosis
from hookbridge.tf1_names.target import NEWEST

LIVING = [name for name, idiom in IDIOMS.items() if idiom.runs]
DEAD = [name for name, idiom in IDIOMS.items() if not idiom.runs]
# Removed names by a call, by a star, of a library, and in a branch.
SOME_DEAD = (
    "a removed name that a call imports",
    "a starred name that is removed",
    "a name that a library lacks",
    "a branch that is taken",
)
# A notebook has no `__file__`.
IN_NOTEBOOKS = [name for name in LIVING if "__file__" not in IDIOMS[name].main]


# A program, a name in it, and what a rewrite writes for it; None if it stays.
ANSWERS: dict[str, tuple[str, str, str | None]] = {
    "an optimizer of Keras 2": (
        "from keras.optimizers import Adam\nAdam(lr=0.1)\n",
        "keras.optimizers.Adam",
        "tf.keras.optimizers.legacy.Adam",
    ),
    "Keras in a file of TensorFlow 1": (
        "import tensorflow as tf\nfrom keras.layers import Dense\ntf.placeholder\n",
        "keras.layers.Dense",
        "tf.compat.v1.keras.layers.Dense",
    ),
    "private Keras in a file of TensorFlow 1": (
        "import tensorflow as tf\nfrom tensorflow.python.keras.layers import Dense\n"
        "tf.placeholder\n",
        "tensorflow.python.keras.layers.Dense",
        "tf.compat.v1.keras.layers.Dense",
    ),
    "an Estimator below a plain import": (
        "import tensorflow\ntensorflow.placeholder\n"
        "tensorflow.estimator.DNNClassifier([], [])\n",
        "tf.estimator.DNNClassifier",
        "hookbridge.estimator.v1.DNNClassifier",
    ),
    "an Estimator of its own package, which has the names of v1": (
        "from tensorflow_estimator import estimator\nestimator.DNNClassifier([], [])\n",
        "tensorflow_estimator.estimator.DNNClassifier",
        "hookbridge.estimator.v1.DNNClassifier",
    ),
    "a name that the program gives to v1 alone": (
        "import tensorflow as tf\ntf.compat.v1.placeholder = print\ntf.placeholder\n",
        "tf.placeholder",
        "tf.compat.v1.placeholder",
    ),
    "an import of a name that the program assigns": (
        "import tensorflow as tf\ntf.contrib = print\n"
        "from tensorflow import contrib\ncontrib(1)\n",
        "tf.contrib",
        None,
    ),
    "an import that TensorFlow 1 would have refused, too": (
        "import tensorflow as tf\nimport tensorflow.nothing as other\n"
        "print(tf.placeholder)\n",
        "tf.nothing",
        None,
    ),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_the_scan_names_what_the_rewrite_writes(case: str, tmp_path: Path) -> None:
    text, old, today = ANSWERS[case]
    (tmp_path / "old.py").write_text(text)
    ways = {f.way_out for f in migrate.scan([tmp_path]).findings if f.name == old}
    written = Module(migrate.rewrite(text).source)
    names = {name for _, name in uses(written.nodes, written.names)}
    if today is None:
        imported = {canonical(import_.full) for import_ in all_imports(written.nodes)}
        assert not any(ways) and old in imported
    else:
        assert ways == {f"`{today.replace('hookbridge', 'hb')}`"}
        assert today in names and old not in names


def seeded(count: int) -> pytest.MarkDecorator:
    """Makes a slow test of random programs, of which `make test` runs the first."""
    marks = [ON_NEWEST, pytest.mark.slow]
    further = [*marks, pytest.mark.exhaustive]
    params = [pytest.param(n, marks=further if n else marks) for n in range(count)]
    return pytest.mark.parametrize("seed", params)


def write(folder: Path, names: list[str]) -> Path:
    for file, text in files_of(names).items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)
    return folder / "main.py"


def write_notebook(folder: Path, names: list[str]) -> Path:
    """The same program, in a notebook with a cell for each idiom."""
    main = write(folder, names)
    main.unlink()
    sources = [files_of([])["main.py"], *(IDIOMS[name].main for name in names)]
    cells = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": source}
        for source in sources
    ]
    path = main.with_suffix(".ipynb")
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}))
    return path


def has_comments(folder: Path) -> bool:
    """Whether a rewrite of a folder, in place, leaves something to a person."""
    done = list(file_rewrites.rewrite_files([folder]))
    plan = [one for one in done if isinstance(one, file_rewrites.FileRewrite)]
    list(file_rewrites.write_all([one for one in plan if one.result.changed]))
    return len(plan) < len(done) or any(one.result.todos for one in plan)


def has_doubts(main: Path) -> bool:
    """Whether doctor leaves something of a program to a person."""
    found = diagnosis.diagnose([main], NEWEST)
    return bool(found.left or found.absent or found.missing)


@pytest.mark.parametrize(
    "name",
    [
        # What the newest TensorFlow lacks of private names is known where it is.
        pytest.param(name, marks=[ON_NEWEST] if "private name that is" in name else [])
        for name in IDIOMS
    ],
)
def test_doctor_and_rewrite_know_each_idiom(name: str, tmp_path: Path) -> None:
    main = write(tmp_path, [name])
    assert has_doubts(main) is not IDIOMS[name].runs, files_of([name])
    # A rewrite does not look into other libraries.
    in_libraries = (
        *("a name that a library lacks", "a module that a library lacks"),
        "a package that is not installed",
    )
    assert has_comments(tmp_path) is (
        not IDIOMS[name].runs and name not in in_libraries
    )


@seeded(60)
def test_random_names_have_one_answer(
    seed: int, tmp_path: Path, launcher: ForkServer, fork_server: ForkServer
) -> None:
    assert not random_names.differences(seed, tmp_path, launcher, fork_server)


@seeded(4)
def test_what_doctor_is_content_with_runs(
    seed: int, tmp_path: Path, launcher: ForkServer
) -> None:
    in_notebook = seed % 2 == 1
    some = IN_NOTEBOOKS if in_notebook else LIVING
    make = write_notebook if in_notebook else write
    names = random.Random(seed).sample(some, k=len(some) - 3)
    main = make(tmp_path, names)
    assert not has_doubts(main)
    done = launch_fork(launcher, main.name, cwd=tmp_path)
    if done.returncode:
        for name in names:  # the smallest program that shows it
            folder = tmp_path / name
            main = make(folder, [name])
            alone = launch_fork(launcher, main.name, cwd=folder)
            assert alone.returncode == 0, (files_of([name]), alone.stderr[-1500:])
    assert done.returncode == 0, (files_of(names), done.stderr[-1500:])


@seeded(2)
def test_a_rewrite_without_comments_runs(
    seed: int, tmp_path: Path, fork_server: ForkServer
) -> None:
    names = random.Random(seed).sample(LIVING, k=len(LIVING) - 3)
    write(tmp_path, names)
    assert not has_comments(tmp_path)
    done = fork_server.run("main.py", folder=tmp_path)
    if done.returncode:
        for name in names:
            folder = tmp_path / name
            write(folder, [name])
            assert not has_comments(folder)
            alone = fork_server.run("main.py", folder=folder)
            texts = [path.read_text() for path in folder.rglob("*.py")]
            assert alone.returncode == 0, (texts, alone.stderr[-1500:])
    assert done.returncode == 0, (files_of(names), done.stderr[-1500:])


@ON_NEWEST
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in SOME_DEAD else [pytest.mark.exhaustive])
        for name in DEAD
    ],
)
def test_what_doctor_leaves_to_a_person_does_not_run(
    name: str, tmp_path: Path, launcher: ForkServer
) -> None:
    some = random.Random(name).sample(LIVING, k=3)
    main = write(tmp_path, [*some, name])
    assert has_doubts(main)
    assert launch_fork(launcher, "main.py", cwd=tmp_path).returncode != 0
