"""Every program of the README and the docs runs, and prints what the README says."""

from __future__ import annotations

import re
import shutil
import signal
from pathlib import Path

import pytest
from code_blocks import PAGES, ROOT, blocks
from fork_server import ForkServer

pytestmark = pytest.mark.slow

# Checks that run after the first Python blocks of the README.
AFTER = {
    0: "assert hooks[0].callback is guests[0] and session.should_stop()\n",
    1: "assert model.optimizer.iterations.numpy() == 25\n",
}
PROGRAM = """
import os

for number, (place, source) in enumerate({blocks!r}):
    os.makedirs(str(number))
    os.chdir(str(number))
    exec(compile(source, place, "exec"), {{"__name__": "__main__"}})
    os.chdir("..")
"""
REFERENCE = [page for page in PAGES if page.startswith("docs/reference/")]
ALONE = ("README.md", "docs/quickstart.md")
PORT = "docs/port-to-keras-3.md"
TUTORIALS = ("docs/from-estimator-to-fit.md", "docs/kill-and-restart.md", PORT)
OTHERS = [page for page in PAGES if page not in (*ALONE, *REFERENCE, *TUTORIALS)]


@pytest.mark.parametrize(
    "pages",
    [
        *(pytest.param([page], id=page) for page in ALONE),
        pytest.param(OTHERS, id="others"),
        pytest.param(REFERENCE, id="reference", marks=pytest.mark.one_tensorflow),
    ],
)
def test_python_blocks_run(
    pages: list[str], tmp_path: Path, fork_server: ForkServer
) -> None:
    """Each page in a new process; other pages than these two share one."""
    sources = [
        (
            f"{page}:{block.line}",
            block.text + (AFTER.get(place, "") if page == "README.md" else ""),
        )
        for page in pages
        for place, block in enumerate(blocks(page, "python"))
    ]
    done = fork_server.run("-c", PROGRAM.format(blocks=sources), folder=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("page", "ends"),
    [
        ("docs/from-estimator-to-fit.md", {"": 0}),
        ("docs/kill-and-restart.md", {"--kill": -signal.SIGKILL, "": 0}),
    ],
)
def test_a_tutorial_prints_what_its_page_shows(
    page: str, ends: dict[str, int], tmp_path: Path, fork_server: ForkServer
) -> None:
    """Its program runs once for each of its ends: by arguments, exit codes."""
    program = tmp_path / "train.py"
    program.write_text("\n".join(block.text for block in blocks(page, "python")))
    printed = ""
    for arguments, code in ends.items():
        done = fork_server.run(str(program), *arguments.split(), folder=tmp_path)
        assert done.returncode == code, done.stderr
        printed += done.stdout
    assert printed == "".join(block.text for block in blocks(page, "text"))


@pytest.mark.one_tensorflow
def test_the_port_is_proved_as_its_page_shows(
    tmp_path: Path, fork_server: ForkServer, launcher: ForkServer
) -> None:
    """The commands of its blocks print what they show; the diff corrects the port."""
    old, port = (block.text for block in blocks(PORT, "python"))
    (tmp_path / "old.py").write_text(old)
    exit_codes = []
    for block in blocks(PORT, "text", "diff"):
        if block.language == "diff":
            port = apply_diff(block.text, port)
            continue
        (tmp_path / "port.py").write_text(port)
        printed = ""
        for line in re.findall(r"^\$ (.*)$", block.text, re.M):
            printed += f"$ {line}\n"
            program, *words = line.split()
            if program == "rm":
                shutil.rmtree(tmp_path / words[-1])
                continue
            server = launcher if words[0] == "record" else fork_server
            command = words if program == "python" else ["-m", program, *words]
            done = server.run(*command, folder=tmp_path)
            exit_codes.append(done.returncode)
            printed += done.stdout
        assert printed == block.text
    assert exit_codes == [0, 0, 1, 0, 0]  # a record, then two ports and comparisons


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
    ("script", "steps_before", "steps_after"),
    [
        ("tf1_script.py", (1599, 1600), 1500),
        pytest.param("fit_script.py", (800,), 300, marks=pytest.mark.one_tensorflow),
    ],
)
def test_script_gains_hookbridge_by_the_diff(
    tmp_path: Path,
    fork_server: ForkServer,
    script: str,
    steps_before: tuple[int, ...],
    steps_after: int,
) -> None:
    diff = blocks("README.md", "diff")[script == "fit_script.py"]
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


def test_programs_print_what_the_pages_say(
    tmp_path: Path, fork_server: ForkServer, launcher: ForkServer
) -> None:
    explanation = blocks("docs/quickstart.md", "python")[-1].text
    done = fork_server.run("-c", explanation, folder=tmp_path)
    assert done.stdout == blocks("docs/quickstart.md", "text")[-1].text
    program = str(ROOT / "examples" / "old_program.py")
    done = launcher.run("-m", "hookbridge", "run", program, folder=tmp_path)
    said = [line for line in done.stderr.splitlines() if line.startswith("hookbridge")]
    expected = blocks("README.md", "text")[0].text.split()
    assert " ".join([*said, done.stdout]).split() == expected
    alone = fork_server.run(program, folder=tmp_path)
    assert "has no attribute 'placeholder'" in alone.stderr
