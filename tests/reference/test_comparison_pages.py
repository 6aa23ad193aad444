"""The page of a comparison: what it says and draws."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import hookbridge as hb
from hookbridge.cli import main


def port(folder: Path, *, factor: float = 1.0, decay: float = 1.0) -> Path:
    """Three steps of gradient descent on one weight."""
    w = np.array([[1.0, 2.0]], "float32")
    with hb.recording(folder, {"dense/kernel": w}) as r:
        for step in range(3):
            rate = np.float32(0.1 * decay**step)
            gradient = factor * w
            loss = factor * (w**2).sum() / 2
            w = w - rate * gradient
            r.step(
                loss=loss,
                weights={"dense/kernel": w},
                gradients={"dense/kernel": gradient},
                learning_rate=rate,
            )
    return folder


def page_of(reference: Path, other: Path, file: Path) -> str:
    main(["compare", f"--page={file}", str(reference), str(other)])
    return file.read_text(encoding="utf-8")


def test_page_names_both_and_draws_what_changes(tmp_path: Path) -> None:
    """No curve of a constant rate, no backticks, and a wide chart of differences."""
    reference = port(tmp_path / "old_program")
    other = port(tmp_path / "new_program", factor=2.0)
    page = page_of(reference, other, tmp_path / "page.html")
    title = "new_program compared with old_program"
    assert f"<title>{title}</title>" in page and f"<h1>{title}</h1>" in page
    assert "`" not in page and "<code>loss</code>" in page
    drawn = re.findall(r'<figure.*?aria-label="([^"]*)"', page)
    assert drawn == ["loss", "log10(difference / tolerance)"]
    rates = "0.1 in the reference, 0.1 in the port"
    assert f"<p>learning_rate, the same in every step: {rates}</p>" in page
    wide = re.findall(r'<figure class="wide"><svg viewBox="0 0 (\d+)', page)
    assert wide == ["900"]
    assert "overflow-wrap: break-word" in page  # captions break between words


def test_page_draws_a_rate_that_changes(tmp_path: Path) -> None:
    """Folders of one name are told apart by their paths."""
    reference = port(tmp_path / "a" / "run", decay=0.5)
    other = port(tmp_path / "b" / "run")
    page = page_of(reference, other, tmp_path / "page.html")
    assert f"<title>{other} compared with {reference}</title>" in page
    drawn = re.findall(r'aria-label="([^"]*)"', page)
    assert drawn[:2] == ["loss", "learning_rate"]
