"""Every refusal names the page that tells more, and the page has that heading."""

from __future__ import annotations

import ast
import pickle
import re
from pathlib import Path

import pytest

from hookbridge import errors
from hookbridge.cli import main
from hookbridge.pages import PAGES, anchor, pointer

REFUSALS = {
    "EpochsUndefinedError",
    "LiveModelError",
    "LiveSessionError",
    "NeverCalledError",
    "RefusedError",
    "UnknownMetricError",
}


@pytest.mark.parametrize("place", sorted(set(PAGES.values())))
def test_the_page_has_the_heading(place: str, repo_root: Path) -> None:
    page, _, heading = place.partition("#")
    text = (repo_root / page).read_text("utf-8")
    anchors = [anchor(found) for found in re.findall(r"^#+ (.*)$", text, re.M)]
    assert not heading or heading in anchors


@pytest.mark.parametrize("row", sorted(PAGES))
def test_the_command_of_a_message_prints_the_section(
    row: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (command,) = re.findall("`hookbridge (.*)`", pointer(row))
    assert main(command.split()) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    heading = PAGES[row].partition("#")[2]
    assert first.startswith("#") and len(rest) > 2
    if heading:
        depth = len(first) - len(first.lstrip("#"))
        assert anchor(first) == heading
        assert not [line for line in rest if re.match(rf"#{{1,{depth}}} ", line)]


def test_a_page_is_named_in_any_way(capsys: pytest.CaptureFixture[str]) -> None:
    texts = set()
    for place in ("towers", "towers.md", "docs/towers.md"):
        assert main(["docs", place]) == 0
        texts.add(capsys.readouterr().out)
    assert len(texts) == 1
    assert main(["docs"]) == 0
    assert "reference/errors.md" in capsys.readouterr().out
    for place, said in (("tower", "towers.md"), ("towers#tower", "models-in-towers")):
        assert main(["docs", place]) == 2
        assert said in capsys.readouterr().err


def calls(repo_root: Path) -> list[tuple[str, ast.Call]]:
    """Every call in the sources: `(file:line, call)`."""
    found = []
    for folder in ("adapters", "hookbridge"):
        for file in sorted((repo_root / folder).rglob("*.py")):
            if "adapters" in file.relative_to(repo_root / folder).parts:
                continue  # hookbridge/adapters is a link
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.Call):
                    found.append((f"{file}:{node.lineno}", node))
    return found


def test_every_refusal_sees_a_page(repo_root: Path) -> None:
    used = set()
    without = []
    for place, call in calls(repo_root):
        rows = [k.value for k in call.keywords if k.arg == "see"]
        used |= {row.value for row in rows if isinstance(row, ast.Constant)}
        name = ast.unparse(call.func).removeprefix("errors.")
        if name in REFUSALS and not rows:
            without.append(place)
    assert not without
    # `hookbridge/missing.py` uses the row `estimator` without `see=`.
    assert used | {"estimator"} == set(PAGES)


def test_the_message_names_the_page_once_even_in_another_process() -> None:
    error = errors.RefusedError("It cannot run. Leave it out.", see="towers")
    assert str(error) == f"It cannot run. Leave it out. {pointer('towers')}"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
