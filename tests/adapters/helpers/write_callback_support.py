"""Writes the tables of docs/callbacks-in-sessions.md for the Kerases of this TF."""

from __future__ import annotations

import importlib
import os
import re
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path[:0] = [str(Path(__file__).resolve().parents[3]), str(Path(__file__).parent)]

import callback_support as support  # noqa: E402 - needs the path


def main() -> None:
    """Runs every callback in every loop, which takes a minute."""
    for flavour in support.FLAVOURS:
        keras = importlib.import_module(flavour)
        with tempfile.TemporaryDirectory() as folder:
            outcomes = support.carry(keras, Path(folder))
        rows = support.table_of(keras, outcomes)
        title = rows.partition("\n")[0]
        page = support.TABLE.read_text("utf-8")
        old = re.compile(rf"^{re.escape(title)}\n\n(-.*\n)+", re.MULTILINE)
        page, count = old.subn(lambda _: rows, page)  # noqa: B023 - called here
        assert count == 1, f"no table under {title!r}"
        support.TABLE.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
