"""`hookbridge migrate scan`: what TF1 code needs on a newer TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from absl import flags

from hookbridge import errors
from hookbridge.migrate.target import NEWEST

SUMMARY = "Find what TF1 code with hooks and Estimators needs on a newer TensorFlow."
USAGE = "scan [--flag=value ...] PATH..."
FORMATS = ("text", "json", "sarif", "html")


def define_flags(values: Any) -> None:
    """Defines the command's flags in `values`."""
    flags.DEFINE_enum(
        "format", "text", FORMATS, "How the report is written.", flag_values=values
    )
    flags.DEFINE_string(
        "target",
        NEWEST,
        "The TensorFlow that the code shall run on.",
        flag_values=values,
    )
    flags.DEFINE_boolean(
        "check", False, "Exit with 1 if anything is left to do.", flag_values=values
    )


def run(values: Any, arguments: Sequence[str]) -> int:
    """Prints the report; with `--check`, returns 1 if anything is left."""
    if len(arguments) < 2 or arguments[0] != "scan":
        raise errors.InvalidArgumentError(
            f"Received {' '.join(arguments) or 'no arguments'}; expected `scan` and "
            "files, notebooks or folders."
        )
    from hookbridge.migrate import formats, html, scan

    report = scan(arguments[1:], target=values.target)
    write = {
        "text": formats.as_text,
        "json": formats.as_json,
        "sarif": formats.as_sarif,
        "html": html.as_html,
    }[values.format]
    print(write(report))
    return int(values.check and report.left > 0)
