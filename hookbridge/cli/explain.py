"""`hookbridge explain` shows what a loop would do with the guests of a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from absl import flags

from hookbridge import errors

SUMMARY = "Show what a loop would deliver to each hook and callback of a file."
USAGE = "[--flag=value ...] FILE.py"
HOSTS = ("session", "fit", "parameter_server")


def define_flags(values: Any) -> None:
    """Defines the command's flags in `values`."""
    flags.DEFINE_enum(
        "host",
        "session",
        HOSTS,
        "The loop that would run the guests.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "guests",
        "guests",
        "Name of the list in the file, or of a function that returns it.",
        flag_values=values,
    )
    flags.DEFINE_boolean(
        "json", False, "Print the report as JSON instead of text.", flag_values=values
    )


def run(values: Any, arguments: Sequence[str]) -> int:
    """Prints the report; returns 2 if the loop would refuse a guest."""
    if len(arguments) != 1:
        raise errors.InvalidArgumentError(
            f"Received {len(arguments)} arguments; expected one Python file with a "
            f"list `{values.guests}` of hooks and callbacks."
        )
    from hookbridge.explanation import explain
    from hookbridge.training import user_file

    module = user_file.load_file(arguments[0])
    report = explain(user_file.find_guests(module, values.guests), host=values.host)
    print(json.dumps(report.to_json(), indent=2) if values.json else report)
    # A refused guest is bad input: its training would not begin.
    return 2 if any(guest.verdict == "refused" for guest in report.guests) else 0
