"""Every program of the README and the docs runs, and prints what the README says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from code_blocks import PAGES, ROOT, blocks
from fork_server import ForkServer

pytestmark = pytest.mark.slow

# Checks that run after the first Python blocks of the README.
AFTER = {
    0: "assert hooks[0].callback is guests[0] and session.should_stop()\n",
    1: "assert estimator.get_variable_value('global_step') > 10\n",
    2: "assert model.optimizer.iterations.numpy() == 25\n",
}
RUN_BLOCK = "    exec(compile(source, '<block>', 'exec'), {'__name__': '__main__'})\n"


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")])
def test_python_blocks_run(page: str, tmp_path: Path, fork_server: ForkServer) -> None:
    sources = [
        block.text + (AFTER.get(place, "") if page == "README.md" else "")
        for place, block in enumerate(blocks(page, "python"))
    ]
    program = f"for source in {sources!r}:\n{RUN_BLOCK}"
    done = fork_server.run("-c", program, folder=tmp_path)
    assert done.returncode == 0, done.stderr


def apply_diff(diff: str, source: str) -> str:
    """Applies a diff without line numbers; hunks are divided by `@@` lines."""
    for hunk in re.split(r"^@@.*\n", diff, flags=re.M):
        lines = hunk.splitlines()
        old = "\n".join(line[1:] for line in lines if line[0] in " -")
        new = "\n".join(line[1:] for line in lines if line[0] in " +")
        assert source.count(old) == 1, f"found {source.count(old)} times: {old}"
        source = source.replace(old, new)
    return source


@pytest.mark.parametrize(
    ("place", "script", "steps_before", "steps_after"),
    [(0, "tf1_script.py", (1599, 1600), 1500), (1, "fit_script.py", (800,), 300)],
)
def test_script_gains_hookbridge_by_the_diff(
    tmp_path: Path,
    fork_server: ForkServer,
    place: int,
    script: str,
    steps_before: tuple[int, ...],
    steps_after: int,
) -> None:
    diff = blocks("README.md", "diff")[place]
    before = (ROOT / "examples" / script).read_text("utf-8")
    after = apply_diff(diff.text, before)

    def steps(source: str) -> int:
        done = fork_server.run("-c", source, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        match = re.search(r"stopped after (?:about )?(\d+) steps", done.stdout)
        assert match is not None, done.stdout
        return int(match[1])

    assert steps(before) in steps_before
    assert steps(after) <= steps_after


def test_programs_print_what_the_readme_says(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    explanation = blocks("README.md", "python")[3].text
    done = fork_server.run("-c", explanation, folder=tmp_path)
    assert done.stdout == blocks("README.md", "text")[1].text
    program = str(ROOT / "examples" / "old_program.py")
    # In a new process, in which TensorFlow is not yet imported.
    done = subprocess.run(
        [sys.executable, "-m", "hookbridge", "run", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    said = [line for line in done.stderr.splitlines() if line.startswith("hookbridge")]
    expected = blocks("README.md", "text")[0].text.split()
    assert " ".join([*said, done.stdout]).split() == expected
    alone = fork_server.run(program, folder=tmp_path)
    assert "has no attribute 'placeholder'" in alone.stderr
