"""Counts the programs that end after `tf_upgrade_v2`, beside `run` and `rewrite`.

    python -m tests.proof.upgrades

Each program of tests/run/program_table.py and tests/migrate/splits, and each idiom of
tests/run/idioms.py as a program of its own, is upgraded and run in five ways. A program
ends if its exit code is 0. docs/migration.md has the numbers.
"""

from __future__ import annotations

import functools
import shutil
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / name) for name in ("helpers", "migrate", "run")]

from fork_server import ForkServer, fork_server  # noqa: E402
from idioms import IDIOMS, files_of  # noqa: E402
from migrate_command import in_place  # noqa: E402
from program_table import PROGRAMS, PROGRAMS_DIR, SMALL_DIR  # noqa: E402
from test_split_programs import PROGRAMS as SPLITS  # noqa: E402
from test_split_programs import write  # noqa: E402

LIVING = [name for name, idiom in IDIOMS.items() if idiom.runs]
KINDS = {"programs": [*PROGRAMS, *SPLITS], "idioms": LIVING}
SAFETY, BY_HAND = "tf_upgrade_v2 --mode=SAFETY", "SAFETY, disable_v2_behavior()"
WAYS = ("tf_upgrade_v2", SAFETY, BY_HAND, "run", "rewrite")
# What a person adds who knows that the upgraded program still needs a graph.
SWITCH = """
import runpy, sys
import tensorflow as tf
tf.compat.v1.disable_v2_behavior()
sys.path.insert(0, sys.argv[1].rpartition("/")[0])
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "PYTHONPATH": str(ROOT),
}
AT_A_TIME = 2


class Case(NamedTuple):
    """One program in one way."""

    kind: str
    name: str
    way: str


def copied(name: str, folder: Path) -> list[str]:
    """Writes the files of a program into a folder; returns its command line."""
    if name in SPLITS:
        folder.mkdir()
        return [str(write(folder, name) / "main.py")]
    if name in IDIOMS:
        for file, text in files_of([name]).items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text)
        return [str(folder / "main.py")]
    program = PROGRAMS[name]
    if program.path.parent in (PROGRAMS_DIR, SMALL_DIR):
        folder.mkdir()
        shutil.copy(program.path, folder)
    else:
        shutil.copytree(program.path.parent, folder)
    return [str(folder / program.path.name), *program.arguments.split()]


def upgrade(folder: Path, mode: str, server: ForkServer) -> None:
    """Changes a folder in place by `tf_upgrade_v2`, as its users do."""
    words = ["-m", "tensorflow.tools.compatibility.tf_upgrade_v2_main"]
    words += [f"--intree={folder}", "--inplace", f"--mode={mode}"]
    report = folder.with_name(f"{folder.name}.txt")
    server.run(*words, f"--reportfile={report}", folder=folder, **ENVIRONMENT)


def ends(case: Case, top: Path, plain: ForkServer, launcher: ForkServer) -> bool:
    """Whether a program ends with exit code 0."""
    folder = top / f"{WAYS.index(case.way)} {case.name}"
    words = copied(case.name, folder)
    if case.way == "run":
        words = ["-m", "hookbridge", "run", *words]
    elif case.way == "rewrite":
        in_place(folder)
    else:
        upgrade(folder, "SAFETY" if "SAFETY" in case.way else "DEFAULT", plain)
    if case.way == BY_HAND:
        words = ["-c", SWITCH, *words]
    place = folder.with_name(f"{folder.name} cwd")
    place.mkdir()
    server = launcher if case.way == "run" else plain
    return server.run(*words, folder=place, **ENVIRONMENT).returncode == 0


def cases() -> Iterator[Case]:
    for kind, names in KINDS.items():
        for name in names:
            yield from (Case(kind, name, way) for way in WAYS)


def table(ended: dict[Case, bool]) -> str:
    """How many end, as the table of docs/migration.md."""
    lines = ["| way | " + " | ".join(KINDS) + " |", "|---" * (1 + len(KINDS)) + "|"]
    for way in WAYS:
        counts = [
            f"{sum(ended[Case(kind, name, way)] for name in names)} of {len(names)}"
            for kind, names in KINDS.items()
        ]
        lines.append("| " + " | ".join([f"`{way}`", *counts]) + " |")
    return "\n".join(lines)


def main() -> int:
    with ExitStack() as stack:
        top = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        plain = stack.enter_context(fork_server())
        launcher = stack.enter_context(fork_server("needs"))
        pool = stack.enter_context(ThreadPoolExecutor(AT_A_TIME))
        wanted = list(cases())
        run = functools.partial(ends, top=top, plain=plain, launcher=launcher)
        ended = dict(zip(wanted, pool.map(run, wanted), strict=True))
    for case, is_ended in ended.items():
        if not is_ended:
            print(f"{case.way}: {case.name} fails", file=sys.stderr)
    print(table(ended))
    return 0


if __name__ == "__main__":
    sys.exit(main())
