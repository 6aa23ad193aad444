"""`hookbridge migrate`: scans TF1 code, and rewrites it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hookbridge import errors
from hookbridge.cli.flag_table import define, refuse
from hookbridge.migrate.target import NEWEST

SUMMARY = "Find, or rewrite, what TF1 code needs on a newer TensorFlow."
USAGE = "scan|rewrite [--flag=value ...] PATH..."
EXAMPLE = "hookbridge migrate rewrite --diff examples/tf1_script.py"
NOTE = """\
`scan` reports and changes nothing. `rewrite` shows what it would do; `--diff` prints
the change, `--write` makes it. Exit codes: 0; 1 with `--check` if anything is left to
do (scan) or would be rewritten (rewrite), or if a file could not be written; 2 for a
wrong argument."""
REWRITES = ("write", "diff", "native", "add-guests", "list-rules", "only", "skip")
FORMATS = ("text", "json", "sarif", "html")


def define_flags(values: Any) -> None:
    """Defines the command's flags in `values`."""
    define(values, "format", "text", "scan: how the report is written.", FORMATS)
    define(values, "target", NEWEST, "The TensorFlow that the code shall run on.")
    for name, text in (
        ("check", "Exit with 1 if anything is left to do."),
        ("write", "rewrite: change the files."),
        ("diff", "rewrite: print the change."),
        ("native", "rewrite: hooks become Keras callbacks where that is certain."),
        ("add-guests", "rewrite: show how a Keras callback joins each training."),
        ("list-rules", "rewrite: print the rules."),
    ):
        define(values, name, False, text)
    for name, text in (
        ("only", "rewrite: apply these rules alone, by name."),
        ("skip", "rewrite: leave these rules out."),
    ):
        define(values, name, [], text)


def run(values: Any, arguments: Sequence[str]) -> int:
    """Scans or rewrites, as the first argument says."""
    verb, *paths = arguments or [""]
    if verb == "rewrite":
        from hookbridge.cli import migrate_rewrite

        refuse(values, ["format"], "rewrite", "only scan makes use of it")
        return migrate_rewrite.run(values, paths)
    if verb != "scan" or not paths:
        raise errors.InvalidArgumentError(
            f"Received {' '.join(arguments) or 'no arguments'}; expected `scan` or "
            "`rewrite`, and files, notebooks or folders."
        )
    refuse(values, REWRITES, "scan", "only rewrite makes use of it")
    from hookbridge.migrate import formats, html, scan

    report = scan(paths, target=values.target)
    write = {
        "text": formats.as_text,
        "json": formats.as_json,
        "sarif": formats.as_sarif,
        "html": html.as_html,
    }[values.format]
    print(write(report))
    return int(values.check and report.left > 0)
