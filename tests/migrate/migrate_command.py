"""The command `hookbridge migrate` and a rewrite of files, in this process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pytest

from hookbridge.cli import main
from hookbridge.old_programs.rewriting import file_rewrites

Output: TypeAlias = pytest.CaptureFixture[str]


class Done(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


def in_place(*paths: Path) -> list[file_rewrites.FileRewrite]:
    """Rewrites files and folders; returns what was read."""
    found = list(file_rewrites.rewrite_files(paths))
    plan = [done for done in found if isinstance(done, file_rewrites.FileRewrite)]
    assert len(plan) == len(found), found
    list(file_rewrites.write_all([done for done in plan if done.result.changed]))
    return plan


def command(output: Output, *words: str | os.PathLike[str]) -> Done:
    """Runs it; `output` is the fixture `capsys`."""
    code = main(["migrate", *map(str, words)])
    return Done(code, *output.readouterr())
