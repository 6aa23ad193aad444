"""The command `hookbridge migrate`, in this process."""

from __future__ import annotations

import os
from typing import NamedTuple, TypeAlias

import pytest

from hookbridge.cli import main

Output: TypeAlias = pytest.CaptureFixture[str]


class Done(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


def command(output: Output, *words: str | os.PathLike[str]) -> Done:
    """Runs it; `output` is the fixture `capsys`."""
    code = main(["migrate", *map(str, words)])
    return Done(code, *output.readouterr())
