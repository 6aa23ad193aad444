"""Doctor, run and rewrite agree, also if a program is split over several files.

Nothing is left to a person exactly if `run` reaches the end, and a rewritten program
runs exactly if the rewrite left no comment. Both print the losses and steps and leave
the files of the TensorFlow that the program is for, which
`tests/run/record_program_losses.py` has recorded.
"""

from __future__ import annotations

import ast
import json
import math
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from fork_server import ForkServer
from left_files import files_of
from migrate_command import in_place
from program_table import PROGRAMS, PROGRAMS_DIR, RECORDED, WHOLE, numbers

from hookbridge.ground.compat import LAST_WITH_KERAS2, installed_tf_version
from hookbridge.old_programs.scanning import diagnosis
from hookbridge.tf1_names.target import NEWEST

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
AT_A_TIME = 2
# The last printed digits differ: TF 1.15 and 2.21 add numbers in different orders.
RELATIVE, ABSOLUTE = 1e-4, 1e-6
RELATIVE_OF_RUN = 1e-5
# What nobody carries: all four say so.
GONE = {
    "gone_below_another_name": (
        "from tensorflow.contrib import learn\n"
        "learn.preprocessing.CategoricalProcessor(3)\n"
    )
}
if installed_tf_version() == tuple(map(int, NEWEST.split("."))):
    # Private names of another TensorFlow are not known.
    GONE["private_name"] = (
        "from tensorflow.python.ops import no_such_ops\nno_such_ops.add(1, 2)\n"
    )
# Each program that takes a second goes one way in `make test`. Two go none: what they
# need of tf.contrib is compared in tests/run/test_contrib.py and test_contrib_names.py.
LONG = {
    ("run", "tagger"),
    ("rewrite", "tagger"),
    ("run", "experiment"),
    ("rewrite", "experiment"),
    ("rewrite", "iris"),
    ("run", "mnist_towers"),
    ("rewrite", "queue_fed"),
    ("run", "keras_estimator"),
    ("run", "slim_nets"),
    ("rewrite", "early_stopping"),
    ("run", "custom_hooks"),
    ("rewrite", "sync_replicas"),
    ("run", "train_and_eval"),
    ("rewrite", "half_upgraded"),
}
CASES = [(way, name) for way in ("run", "rewrite") for name in (*PROGRAMS, *GONE)]
# The program is one of TensorFlow 2 already, which its rewrite leaves as it is.
CASES.remove(("rewrite", "ps_fit"))
if installed_tf_version() <= LAST_WITH_KERAS2:
    # Far fewer names are missing there, and a rewrite is for the newest TensorFlow.
    CASES = [("run", name) for name in ("experiment", "queue_fed", "ps_fit")]


def split(text: str) -> tuple[str, str]:
    """A program as a main file and the module `parts`, which it imports by a star.

    The module gets the functions and classes that use no variable of the main file.
    """
    body = ast.parse(text).body
    imports = [n for n in body if isinstance(n, ast.Import | ast.ImportFrom)]
    definitions = [n for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    parts = [
        n
        for n in definitions
        if not any(isinstance(inner, ast.Global) for inner in ast.walk(n))
    ]
    while True:
        rest = [n for n in body if n not in imports and n not in parts]
        bound = {name for node in rest for name in _bound(node)}
        free = [n for n in parts if not bound & _read(n)]
        if free == parts:
            break
        parts = free
    future = [n for n in imports if getattr(n, "module", "") == "__future__"]
    others = [n for n in imports if n not in future]
    star = ast.parse("from parts import *").body
    main = ast.Module([*future, *others, *star, *rest], [])
    used = {name for node in parts for name in _read(node)}
    needed = [n for n in imports if used & {_first(alias) for alias in n.names}]
    return ast.unparse(main), ast.unparse(ast.Module([*needed, *parts], []))


def _bound(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    inside = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
    return {n.id for n in inside if isinstance(n.ctx, ast.Store)}


def _first(alias: ast.alias) -> str:
    return (alias.asname or alias.name).partition(".")[0]


def _read(node: ast.stmt) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def copied(name: str, folder: Path) -> Path:
    """Writes the files of a program into a folder; returns its main file."""
    if name in WHOLE and WHOLE[name].path.parent != PROGRAMS_DIR:
        # Who runs the program at the same time writes its cache.
        skip = shutil.ignore_patterns("__pycache__")
        shutil.copytree(WHOLE[name].path.parent, folder, ignore=skip)
        return folder / WHOLE[name].path.name
    folder.mkdir()
    text = GONE[name] if name in GONE else PROGRAMS[name].path.read_text("utf-8")
    texts = (text,) if name in (*WHOLE, *GONE) else split(text)
    for file, part in zip(("main.py", "parts.py"), texts, strict=False):
        (folder / file).write_text(part)
    return folder / "main.py"


class Ran(NamedTuple):
    """How one program ended, and what was said of it before."""

    code: int
    out: str
    err: str
    files: list[str]
    left: int


def ran(way: str, name: str, folder: Path, server: ForkServer) -> Ran:
    main, place = copied(name, folder), folder.with_name(f"{folder.name}_cwd")
    words = [str(main), *(PROGRAMS[name].arguments.split() if name in PROGRAMS else ())]
    if way == "run":
        words = ["-m", "hookbridge", "run", *words]
        found = diagnosis.diagnose([main], NEWEST)
        # It needs the main file alone.
        assert found.report.files == len(list(folder.glob("*.py")))
        left = found.left
    else:
        left = sum(len(done.result.todos) for done in in_place(folder))
    place.mkdir()
    environment = {**ENVIRONMENT, "PYTHONPATH": str(ROOT)}
    done = server.run(*words, folder=place, **environment)
    return Ran(done.returncode, done.stdout, done.stderr, files_of(place), left)


@pytest.fixture(scope="module")
def runs(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    fork_server: ForkServer,
    launcher: ForkServer,
) -> Iterator[dict[tuple[str, str], Future[Ran]]]:
    """The runs of the chosen tests, a few at a time."""
    top = tmp_path_factory.mktemp("programs")
    servers = {"run": launcher, "rewrite": fork_server}
    names = {item.name for item in request.session.items}
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        yield {
            (way, name): pool.submit(
                ran, way, name, top / f"{way}_{name}", servers[way]
            )
            for way, name in CASES
            if any(test.endswith(f"[{way}-{name}]") for test in names)
        }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "name"),
    [
        pytest.param(*case, marks=[pytest.mark.exhaustive] * (case in LONG))
        for case in CASES
    ],
)
def test_a_program_ends_exactly_if_nothing_is_left(
    way: str, name: str, runs: dict[tuple[str, str], Future[Ran]]
) -> None:
    done = runs[way, name].result()
    assert (done.left == 0) is (done.code == 0), without_logs(done.err)[-5000:]
    assert (done.left == 0) is (name not in GONE)
    if name in GONE:
        return
    program, recorded = PROGRAMS[name], json.loads(RECORDED.read_text("utf-8"))[name]
    assert without_shards(done.files) == without_shards(recorded["files"])
    now, was = program.told(done.out, done.err), recorded["told"]
    if name == "early_stopping":
        # TensorFlow's hook may read the step before or after the update of its run.
        (step, w), (step_before, w_before) = [
            list(map(float, numbers(told))) for [told] in (now, was)
        ]
        assert abs(step - step_before) <= 1
        assert w == 2 - 2 ** (1 - step) == pytest.approx(w_before, abs=0.07)
        return
    if name == "sync_replicas":
        # TensorFlow may read a loss before or after the update.
        now, was = (list(dict.fromkeys(lines))[:4] for lines in (now, was))
    assert len(now) == len(was), (now, was)
    of_run = way == "run" and name in WHOLE
    for one, before in zip(now, was, strict=True):
        assert is_same(one, before, of_run), (one, before)
    if name == "ps_fit":
        # Threads that TensorFlow leaves in its C++ code abort a process at its end.
        assert done.out.splitlines()[-1] == "left []"


def is_same(line: str, expected: str, of_run: bool) -> bool:
    """Whether two lines are equal; some losses of a run have few printed digits."""
    relative, pairs = RELATIVE, zip(numbers(line), numbers(expected), strict=True)
    if of_run:
        relative = RELATIVE_OF_RUN
    return line.split()[0] == expected.split()[0] and all(
        math.isclose(
            float(one),
            float(other),
            rel_tol=relative,
            abs_tol=1.01 * 10 ** -len(other.partition(".")[2]) if of_run else ABSOLUTE,
        )
        for one, other in pairs
    )


def without_logs(output: str) -> str:
    """What a process wrote to its standard error, but for notes of its progress."""
    logs = ("INFO:", "I0", "I1", "W0", "W1", "Extension modules:")
    return "\n".join(x for x in output.splitlines() if not x.startswith(logs))


def without_shards(names: list[str]) -> list[str]:
    """Names of files; all data parts of a checkpoint have the same name.

    TensorFlow 1.15 wrote some checkpoints in more parts than TensorFlow 2 does.
    """
    return sorted({re.sub(r"\.data-\d{5}-of-\d{5}$", ".data", name) for name in names})
