"""What a command that refuses its words writes to standard error."""

from __future__ import annotations

import pytest


def one_line_of_error(capsys: pytest.CaptureFixture[str]) -> str:
    """Checks that a command has written one line of error, and no result.

    Returns:
      The line.
    """
    out, err = capsys.readouterr()
    assert out == "", out
    assert is_one_line(err), err
    return err


def is_one_line(err: str) -> bool:
    """Whether a text is one line of a command of hookbridge."""
    is_ours = err.startswith("hookbridge: ")
    return is_ours and err.endswith("\n") and err.count("\n") == 1
