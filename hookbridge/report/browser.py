"""Opens a report in the user's browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path


def open_report(path: str | Path) -> str:
    """Opens a file in the default browser, or in the one that `$BROWSER` names.

    Returns:
      A line that says what was done; a machine without a browser is no error.
    """
    address = Path(path).resolve().as_uri()
    if webbrowser.open(address):
        return f"Opened {address}"
    return (
        f"No browser was found to open {address} in: `$BROWSER` can name one. The file "
        "needs nothing else, so it can be copied to where there is one."
    )
