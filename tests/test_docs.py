"""What README and docs say: real commands and files, links, tables of the code."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import lifecycle_tables
import pytest
from code_blocks import PAGES, ROOT, blocks
from fork_server import ForkServer

ONE_TENSORFLOW = True


def test_the_programs_of_the_quickstart_share_no_folder() -> None:
    """Readers start them in one folder, one after the other, and again."""
    page = (ROOT / "docs" / "quickstart.md").read_text("utf-8")
    folders = re.findall(r'(?:checkpoint_dir=|SaverHook\()"(.*?)"', page)
    assert len(folders) == len(set(folders)) == 2


def test_every_block_is_of_a_kind_that_is_tested(subtests: pytest.Subtests) -> None:
    kinds = {b.language for page in PAGES for b in blocks(page)}
    assert kinds <= {"python", "diff", "sh", "bash", "yaml", "text"}  # text is no code
    for page in PAGES:
        with subtests.test(str(page)):
            for block in blocks(page, "bash"):  # jobs of hours
                for file in re.findall(r"python (\S+\.py)", block.text):
                    assert (ROOT / file).is_file(), f"{page}:{block.line}: {file}"


def test_the_cost_is_that_of_the_benchmarks(subtests: pytest.Subtests) -> None:
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    match = re.search(
        r"bridged callbacks take (\S+) times .* bridged hooks take (\S+) times "
        r".*?(\d{4}-\d\d-\d\d)",
        text,
    )
    assert match is not None
    page = (ROOT / "benchmarks" / "README.md").read_text("utf-8")
    page = " ".join(page.split())
    for place, loop in ((1, "MonitoredTrainingSession"), (2, "Model.fit")):
        with subtests.test(str(place)):
            table = page.partition(f"| `{loop}`, 0 guests")[2]
            row = re.search(r"\| 10 guests \| (\S+) \|", table)
            assert row is not None and row[1] == match[place]
    assert f"Results of {match[3]}" in page


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


@pytest.mark.slow
@pytest.mark.parametrize(("page", "line"), sorted(set(shell_lines())))
def test_shell_lines_are_real_commands(page: str, line: str, python: Any) -> None:
    """Quick commands run; slow ones must have a real target, test, extra or file."""
    for command in line.split(" && "):
        words = re.findall(r'(?:[^\s"]|"[^"]*")+', command)
        if words[0] == "make":
            # Otherwise make searches for the Pythons, which takes a second each time.
            pythons = [f"PYTHON_{tf}={sys.executable}" for tf in ("215", "NEWEST")]
            asked = [word.replace('"', "") for word in words[1:]]
            make = ["make", "-n", *pythons, *asked]
            done = subprocess.run(make, cwd=ROOT, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
        elif words[:4] == ["python", "-m", "pip", "install"]:
            extras = re.search(r"\[(.*)\]", words[4])
            project = (ROOT / "pyproject.toml").read_text("utf-8")
            for extra in extras[1].split(",") if extras else ():
                assert f"\n{extra} = [" in project
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
        elif words[0] == "python":
            program = 3 if words[1] == "-m" else 2
            done = python(*words[1:program], "--help", PYTHONPATH=str(ROOT))
            assert done.returncode == 0, done.stderr
            known = set(re.findall(r"--(\w+)", done.stdout))
            flags = {w[2:].split("=")[0] for w in words[program:]}
            assert flags <= known, done.stderr
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


def test_tables_are_those_of_the_code(subtests: pytest.Subtests) -> None:
    for marker, table in (
        ("event map: all", lifecycle_tables.event_map_markdown()),
        ("endings", lifecycle_tables.endings_markdown()),
    ):
        with subtests.test(str(marker)):
            assert marked_table("docs/lifecycle.md", marker) == table


def test_links_lead_somewhere() -> None:
    missing = [
        f"{page}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#\s]+)", (ROOT / page).read_text("utf-8"))
        if "://" not in target and not ((ROOT / page).parent / target).exists()
    ]
    assert not missing


def test_index_lists_every_page() -> None:
    # Users start at the index; what only developers need is in the architecture.
    start = (ROOT / "docs" / name for name in ("index.md", "architecture.md"))
    index = "\n".join(page.read_text("utf-8") for page in start)
    pages = {p.relative_to(ROOT / "docs").as_posix() for p in ROOT.glob("docs/**/*.md")}
    linked = set(re.findall(r"\]\(([^)#\s]+)", index))
    assert pages - {"index.md"} <= linked, "add the page to docs/index.md"


NAMING = ("architecture", "../CONTRIBUTING", "../tests/README")


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


def test_each_name_in_a_walk_is_in_a_file_of_the_walk(
    subtests: pytest.Subtests,
) -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    walks = page.partition("## Walks")[2].partition("\n## ")[0].split("\n### ")[1:]
    assert walks
    for walk in walks:
        title, _, text = walk.partition("\n")
        files = re.findall(r"`((?:adapters|hookbridge)/[\w/.-]+\.py)`", text)
        sources = "\n".join((ROOT / file).read_text("utf-8") for file in files)
        words = set(re.findall(r"\w+", sources))
        with subtests.test(title):
            assert set(re.findall(r"`([A-Za-z_]\w*)`", text)) <= words
