"""Doctor, run and rewrite agree, also if a program is split over two files.

Rewritten programs do on the newest TensorFlow what the originals did on their own, as
`tests/run/record_program_losses.py` and `record_programs.py` have recorded it.

Nothing is left to a person exactly if `run` reaches the end, and a rewritten program
runs exactly if the rewrite left no comment. Both print the same losses and steps and
leave the same files.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import program_table
import pytest
from fork_server import ForkServer
from left_files import files_of
from migrate_command import in_place
from migrated import NATIVE, PROGRAMS, RECORDED, numbers, told

from hookbridge.compat import installed_tf_version
from hookbridge.migrate.target import NEWEST
from hookbridge.run import doctor

# A rewrite is for the newest TensorFlow; tests/run has programs under `run` on both.
ONE_TENSORFLOW = True
ENVIRONMENT = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
ROOT = Path(__file__).resolve().parents[2]
AT_A_TIME = 2
# The last printed digits differ: TF 1.15 and 2.21 add numbers in different orders.
RELATIVE, ABSOLUTE = 1e-4, 1e-6
# What nobody carries: all four say so.
GONE = {
    "gone_below_another_name": (
        "from tensorflow.contrib import learn\n"
        "learn.preprocessing.VocabularyProcessor(3)\n"
    )
}
if installed_tf_version() == tuple(map(int, NEWEST.split("."))):
    # Private names of another TensorFlow are not known.
    GONE["private_name"] = "from tensorflow.python.ops import no_such_ops\n"


def split(text: str) -> tuple[str, str]:
    """A program as a main file and the module `parts`, which it imports by a star.

    The module gets the functions and classes that use no variable of the main file.
    """
    body = ast.parse(text).body
    imports = [n for n in body if isinstance(n, ast.Import | ast.ImportFrom)]
    definitions = [n for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    parts = [n for n in definitions if not any(_is_global(i) for i in ast.walk(n))]
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
    needed = [node for node in imports if used & _imported(node)]
    return ast.unparse(main), ast.unparse(ast.Module([*needed, *parts], []))


def _is_global(node: ast.AST) -> bool:
    return isinstance(node, ast.Global)


def _bound(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    inside = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
    return {n.id for n in inside if isinstance(n.ctx, ast.Store)}


def _imported(node: ast.Import | ast.ImportFrom) -> set[str]:
    return {(a.asname or a.name).partition(".")[0] for a in node.names}


def _read(node: ast.stmt) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


class Ran(NamedTuple):
    """How one program ended, and what was said of it before."""

    code: int
    output: str
    told: list[str]
    files: list[str]
    left: int


def folder_of(name: str, top: Path) -> Path:
    top.mkdir()
    if name in GONE:
        (top / "main.py").write_text(GONE[name])
        return top
    main, parts = split((PROGRAMS / f"{name}.py").read_text("utf-8"))
    (top / "main.py").write_text(main)
    (top / "parts.py").write_text(parts)
    return top


def ran(server: ForkServer, folder: Path, left: int, *words: str) -> Ran:
    place = folder.with_name(f"{folder.name}_cwd")
    place.mkdir()
    main = str(folder / "main.py")
    environment = {**ENVIRONMENT, "PYTHONPATH": str(ROOT)}
    done = server.run(*words, main, folder=place, **environment)
    lines = told(done.stdout)
    return Ran(done.returncode, done.stderr, lines, files_of(place), left)


def rewritten(server: ForkServer, folder: Path) -> Ran:
    left = sum(len(done.result.todos) for done in in_place(folder))
    return ran(server, folder, left)


def unedited(server: ForkServer, folder: Path) -> Ran:
    left = doctor.diagnose([folder / "main.py"], "2.21").left
    return ran(server, folder, left, "-m", "hookbridge", "run")


WAYS = {"run": unedited, "rewrite": rewritten}


@pytest.fixture(scope="module")
def runs(
    tmp_path_factory: pytest.TempPathFactory,
    fork_server: ForkServer,
    launcher: ForkServer,
) -> Iterator[dict[tuple[str, str], Future[Ran]]]:
    top = tmp_path_factory.mktemp("parts")
    servers = {"run": launcher, "rewrite": fork_server}
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        yield {
            (way, name): pool.submit(
                make, servers[way], folder_of(name, top / f"{way}_{name}")
            )
            for way, make in WAYS.items()
            for name in (*NATIVE, *GONE)
        }


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NATIVE, *GONE])
@pytest.mark.parametrize("way", WAYS)
def test_a_program_ends_exactly_if_nothing_is_left(
    way: str, name: str, runs: dict[tuple[str, str], Future[Ran]]
) -> None:
    done = runs[way, name].result()
    assert (done.left == 0) is (done.code == 0), without_logs(done.output)[-5000:]
    assert (done.left == 0) is (name not in GONE)
    if name in GONE:
        return
    recorded = json.loads(RECORDED.read_text("utf-8"))[name]
    assert done.files == recorded["files"]
    now = [numbers(line) for line in done.told]
    was = [numbers(line) for line in recorded["told"]]
    if name == "early_stopping":
        # TensorFlow's hook may read the step before or after the update of its run.
        (step, w), (step_before, w_before) = now[0], was[0]
        assert abs(step - step_before) <= 1
        assert w == 2 - 2 ** (1 - step) == pytest.approx(w_before, abs=0.07)
        return
    if name == "sync_replicas":
        # TensorFlow may read a loss before or after the update.
        now, was = distinct(now), distinct(was)
    assert len(now) == len(was), (now, was)
    for one, before in zip(now, was, strict=True):
        assert one == pytest.approx(before, rel=RELATIVE, abs=ABSOLUTE)


def without_logs(output: str) -> str:
    """What a process wrote to its standard error, but for notes of its progress."""
    logs = ("INFO:", "I0", "I1", "W0", "W1", "Extension modules:")
    return "\n".join(x for x in output.splitlines() if not x.startswith(logs))


def distinct(lines: list[list[float]]) -> list[list[float]]:
    """The first losses, each once."""
    return [line for n, line in enumerate(lines) if line not in lines[:n]][:4]


@pytest.mark.parametrize("name", program_table.PROGRAMS)
def test_doctor_needs_the_main_file_alone(name: str) -> None:
    """Each of these programs reaches its end (tests/run/test_programs.py)."""
    file = program_table.PROGRAMS_DIR / program_table.PROGRAMS[name].file
    found = doctor.diagnose([file], "2.21")
    assert found.left == 0, [one for one in found.found if one.person]
    is_one = file.parent == program_table.PROGRAMS_DIR
    is_one = is_one or len(list(file.parent.glob("*.py"))) == 1
    assert found.files > 1 or is_one


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of `tests/run`, rewritten in place in a copy of their folder."""
    folder = tmp_path_factory.mktemp("moved") / "programs"
    shutil.copytree(program_table.PROGRAMS_DIR, folder)
    mains = [program.file for program in program_table.PROGRAMS.values()]
    own = {folder / main.partition("/")[0] for main in mains}
    assert not any(done.result.todos for done in in_place(*sorted(own)))
    return folder


def without_shards(names: list[str]) -> list[str]:
    """Names of files; all data parts of a checkpoint have the same name.

    TensorFlow 1.15 wrote some checkpoints in more parts than TensorFlow 2 does.
    """
    return sorted({re.sub(r"\.data-\d{5}-of-\d{5}$", ".data", name) for name in names})


@pytest.fixture(scope="module")
def whole_runs(
    moved: Path, tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer
) -> Iterator[dict[str, Future[subprocess.CompletedProcess[str]]]]:
    """The rewritten programs, each run in the folder of its name above `moved`."""

    def run(name: str) -> subprocess.CompletedProcess[str]:
        program, old = program_table.PROGRAMS[name], str(program_table.PROGRAMS_DIR)
        (moved.parent / name).mkdir()
        words = (word.replace(old, str(moved)) for word in program.command())
        place = moved.parent / name
        return fork_server.run(
            *words, folder=place, PYTHONPATH=str(ROOT), **ENVIRONMENT
        )

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        yield {name: pool.submit(run, name) for name in program_table.PROGRAMS}


@pytest.mark.slow
@pytest.mark.parametrize("name", program_table.PROGRAMS)
def test_whole_programs_run_without_a_launcher(
    name: str,
    moved: Path,
    whole_runs: dict[str, Future[subprocess.CompletedProcess[str]]],
) -> None:
    done = whole_runs[name].result()
    assert done.returncode == 0, done.stderr[-3000:]
    recorded = json.loads(program_table.RECORDED.read_text("utf-8"))[name]
    now = program_table.losses_of(done.stdout, done.stderr)
    assert [key for key, _ in now] == [key for key, _ in recorded["losses"]]
    losses = [float(loss) for _, loss in recorded["losses"]]
    found = [float(loss) for _, loss in now]
    assert found == pytest.approx(losses, rel=RELATIVE, abs=ABSOLUTE)
    # This compares the steps too: the names of checkpoints have them.
    left = without_shards(files_of(moved.parent / name))
    assert left == without_shards(recorded["files"])
