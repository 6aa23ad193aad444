"""Every code block of the README and the docs runs; tables agree with the code."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import lifecycle_tables
import pytest
from fork_server import ForkServer

from hookbridge import lifecycle

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    page.relative_to(ROOT).as_posix()
    for page in (
        *(ROOT / n for n in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
        *sorted((ROOT / "docs").glob("**/*.md")),
        ROOT / "benchmarks" / "README.md",
    )
]
# Checks that run after the first Python blocks of the README.
AFTER = {
    0: "assert hooks[0].callback is guests[0] and session.should_stop()\n",
    1: "assert estimator.get_variable_value('global_step') > 10\n",
    2: "assert model.optimizer.iterations.numpy() == 25\n",
}
RUN_BLOCK = "    exec(compile(source, '<block>', 'exec'), {'__name__': '__main__'})\n"


class Block(NamedTuple):
    language: str
    line: int
    text: str


def blocks(page: str, *languages: str) -> list[Block]:
    """The fenced code blocks of a page: all, or those in the given languages."""
    text = (ROOT / page).read_text("utf-8")
    found = [
        Block(match[1], text[: match.start()].count("\n") + 1, match[2])
        for match in re.finditer(r"^```(\S*)\n(.*?)^```$", text, re.M | re.S)
    ]
    return [b for b in found if not languages or b.language in languages]


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command in a new process, in which TensorFlow is not yet imported."""
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
    )


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    kinds = {b.language for page in PAGES for b in blocks(page)}
    assert kinds <= {"python", "diff", "sh", "bash", "text"}  # text is no code
    for page in PAGES:
        for block in blocks(page, "bash"):  # jobs of hours
            for file in re.findall(r"python (\S+\.py)", block.text):
                assert (ROOT / file).is_file(), f"{page}:{block.line}: {file}"


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
    # Without `hookbridge run` the installed TensorFlow cannot run the old program.
    program = str(ROOT / "examples" / "old_program.py")
    command = [sys.executable, "-m", "hookbridge", "run", program]
    done = run(command, tmp_path)
    said = [line for line in done.stderr.splitlines() if line.startswith("hookbridge")]
    told = blocks("README.md", "text")[0].text.split()
    assert " ".join([*said, done.stdout]).split() == told
    alone = fork_server.run(program, folder=tmp_path)
    assert "has no attribute 'placeholder'" in alone.stderr


def run_readme() -> ModuleType:
    """The module `.ci/run_readme.py`; CI runs it in an empty environment."""
    path = ROOT / ".ci" / "run_readme.py"
    spec = importlib.util.spec_from_file_location("run_readme", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_ci_runs_each_command_of_the_readme() -> None:
    commands = run_readme().COMMANDS
    lines = [line for b in blocks("README.md", "sh") for line in b.text.splitlines()]
    assert list(commands) == lines
    for line, found in commands.items():
        if isinstance(found, str):
            assert line.startswith("make ") and (ROOT / found).is_file()
    # CI runs `make test` and `make release`; the latter runs the whole README.
    assert "make test\nmake release\n" in (ROOT / ".ci" / "run").read_text("utf-8")
    assert (ROOT / "Makefile").read_text("utf-8").count(".ci/try_wheel.sh") == 2


def test_the_readme_runs_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "README.md"
    page.write_text(
        "```sh\nfirst > out\nsecond\n```\n"
        "```python\nopen('out', 'a').write('third')\n```\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    for name, code in (("first", 0), ("second", 3)):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {name}\nexit {code}\n")
        (tmp_path / name).chmod(0o755)
    runner: Any = run_readme()
    monkeypatch.setattr(runner, "COMMANDS", {"first > out": 0, "second": 3})
    runner.main("README.md", ())
    assert (tmp_path / "out").read_text() == "first\nthird"
    assert "2 blocks of README.md have run." in capfd.readouterr().out
    monkeypatch.setattr(runner, "COMMANDS", {"first > out": 0, "second": 0})
    with pytest.raises(SystemExit, match="second: exit code 3; expected 0"):
        runner.main("README.md", ())


def test_the_cost_is_that_of_the_benchmarks() -> None:
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    match = re.search(
        r"took (\S+) times .* hooks (\S+) times .*?(\d{4}-\d\d-\d\d)", text
    )
    assert match is not None
    page = (ROOT / "benchmarks" / "README.md").read_text("utf-8")
    page = " ".join(page.split())
    for place, loop in ((1, "MonitoredTrainingSession"), (2, "Model.fit")):
        table = page.partition(f"| `{loop}`, 0 guests")[2]
        row = re.search(r"\| 10 guests \| (\S+) \|", table)
        assert row is not None and row[1] == match[place]
    assert f"Results of {match[3]}" in page


def test_counterparts_are_those_of_the_lifecycle() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| (`(?:begin|before|after|end).*?) \| (.*?) \|$", text, re.M)
    told = {
        (hook, callback)
        for hooks, callbacks in rows
        for hook, callback in zip(
            re.findall(r"`(\w+)`", hooks),
            re.findall(r"`(\w+)`", callbacks),
            strict=False,
        )
    }
    assert told == {
        (event.name, event.counterpart)
        for event in lifecycle.EVENTS.values()
        if event.guest == "hook"
    }


def test_both_directions_are_short() -> None:
    for block in blocks("README.md", "python"):
        code = [
            line
            for line in block.text.splitlines()
            if line.strip() and not line.startswith(("import ", "from "))
        ]
        assert len(code) <= 22, f"README.md:{block.line}"


def shell_lines() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        if page == "docs/examples.md":
            continue  # tests/training/test_examples.py runs all of it
        for block in blocks(page, "sh"):
            for line in block.text.splitlines():
                yield page, line


@pytest.fixture(scope="module")
def python(
    fork_server: ForkServer, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `python WORDS` in an empty folder; the same words run only once."""
    folder = tmp_path_factory.mktemp("commands")
    return functools.cache(functools.partial(fork_server.run, folder=folder))


@pytest.mark.parametrize(("page", "line"), sorted(set(shell_lines())))
def test_shell_lines_are_real_commands(page: str, line: str, python: Any) -> None:
    """Quick commands run; slow ones must have a real target, test, extra or file."""
    for command in line.split(" && "):
        words = re.findall(r'(?:[^\s"]|"[^"]*")+', command)
        if words[0] == "make":
            if shutil.which("make") is None:
                pytest.fail("make is one of the two things the README asks for")
            # Otherwise make searches for the Pythons, which takes a second each time.
            pythons = [f"PYTHON_{tf}={sys.executable}" for tf in ("215", "NEWEST")]
            asked = [word.replace('"', "") for word in words[1:]]
            done = run(["make", "-n", *pythons, *asked], ROOT)
            assert done.returncode == 0, done.stderr
        elif words[:4] == ["python", "-m", "pip", "install"]:
            extras = re.search(r"\[(.*)\]", words[4])
            setup = (ROOT / "setup.py").read_text("utf-8")
            for extra in extras[1].split(",") if extras else ():
                assert f'"{extra}": [' in setup
        elif words[0] == "hookbridge" and (words[1] == "docs" or "--help" in words):
            done = python("-m", *words)
            assert done.returncode == 0, done.stderr
            assert words[1] == "docs" or done.stdout.startswith("usage: hookbridge")
        elif words[0] == "hookbridge":
            subcommand = words[: 3 if words[1] == "migrate" else 2]
            done = python("-m", *subcommand, "--help")
            assert done.returncode == 0, done.stderr
            found = set(re.findall(r"--(?:\[no\])?([\w-]+)", done.stdout))
            given = [w for w in words[2:] if w.startswith("--")]
            known = {flag.replace("-", "_") for flag in found}
            flags = {w[2:].split("=")[0].replace("-", "_") for w in given}
            assert flags <= known
            paths = [w for w in words[2:] if w not in (*given, "scan", "rewrite")]
            assert all((ROOT / path).exists() for path in paths)
        elif words[0].startswith(".venv/") and "pytest" in words:
            target = next((w for w in words if w.startswith("tests/")), "")
            file, _, name = target.partition("::")
            assert (ROOT / file).is_file()
            assert not name or f"def {name}(" in (ROOT / file).read_text("utf-8")
        elif words[0].endswith("/ruff"):
            assert words[1] in ("check", "format")
        elif words[0] == "python" and words[1].endswith(".py"):
            done = python(str(ROOT / words[1]), "--help")
            assert done.returncode == 0, done.stderr
            known = set(re.findall(r"--(\w+)", done.stdout))
            assert {w[2:].split("=")[0] for w in words[2:]} <= known, done.stderr
        else:
            raise AssertionError(f"{page}: no check for `{command}`")


def marked_table(page: str, marker: str) -> str:
    """The table that follows `<!-- marker -->`."""
    text = (ROOT / page).read_text("utf-8")
    _, found, rest = text.partition(f"<!-- {marker} -->\n\n")
    assert found, f"{page} has no marker `{marker}`"
    return "".join(
        line + "\n" for line in rest.split("\n\n")[0].splitlines() if line[:1] == "|"
    )


def test_tables_are_those_of_the_code() -> None:
    for marker, table in (
        ("event map: all", lifecycle_tables.event_map_markdown()),
        ("endings", lifecycle_tables.endings_markdown()),
    ):
        assert marked_table("docs/lifecycle.md", marker) == table


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in target:
            assert ((ROOT / page).parent / target).exists(), f"{page}: {target}"


def test_index_lists_every_page() -> None:
    # Users start at the index; what only developers need is in the architecture.
    start = (ROOT / "docs" / name for name in ("index.md", "architecture.md"))
    index = "\n".join(page.read_text("utf-8") for page in start)
    pages = {p.relative_to(ROOT / "docs").as_posix() for p in ROOT.glob("docs/**/*.md")}
    linked = set(re.findall(r"\]\(([^)#\s]+)", index))
    assert pages - {"index.md"} <= linked, "add the page to docs/index.md"


NAMING = ("architecture", "foundations", "graph-fit", "reliability", "../CONTRIBUTING")


@pytest.mark.parametrize("name", NAMING)
def test_named_files_exist(name: str) -> None:
    page = ROOT / "docs" / f"{name}.md"
    text = page.read_text("utf-8")
    named = re.findall(r"`((?:adapters|hookbridge|tests|docs)/[\w/.-]+)(::\w+)?`", text)
    assert named, f"{page} names no file"
    for path, test in named:
        assert (ROOT / path).exists(), f"{page}: {path}"
        if test:
            source = (ROOT / path).read_text("utf-8")
            assert f"def {test[2:]}(" in source, f"{page}: {path}{test}"
