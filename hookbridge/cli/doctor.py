"""`hookbridge doctor`: what a TensorFlow lacks of a program, and who mends it."""

from __future__ import annotations

from hookbridge import errors
from hookbridge.cli.migrate_scan import FORMATS
from hookbridge.cli.parser import HIDDEN, Parser, Values
from hookbridge.cli.streams import escape_unknown
from hookbridge.tf1_names.target import NEWEST

SUMMARY = "Say whether an old program runs, and which places need manual work."
USAGE = "[--flag=value ...] PATH...   or   ... -m MODULE"
EXAMPLE = "hookbridge doctor examples/tf1_script.py"
NOTE = (
    "Nothing is run and TensorFlow is not imported. Exit code 1 if anything needs\n"
    "manual work, that is, neither `hookbridge run` nor `hookbridge migrate` can\n"
    "handle it. It knows names, not values: `hookbridge docs what-comes-back.md` has\n"
    "what NumPy computes differently since 2."
)


def define_flags(parser: Parser) -> None:
    """Define the command's flags."""
    parser.argument("paths", "*")
    parser.add_argument("-m", default="", help=HIDDEN)
    parser.flag("details", False, "Also show the places that need no manual work.")
    parser.flag("format", "text", "Format of the result.", FORMATS)
    parser.flag(
        "target", NEWEST, "The TensorFlow version that the program will run on."
    )


def run(values: Values) -> int:
    """Print the diagnosis; return 1 if something is left to a person."""
    escape_unknown()
    from hookbridge.old_programs.scanning import diagnosis, formats, verdict

    if bool(values.paths) == bool(values.m):
        received = "both" if values.m else "none"
        raise errors.InvalidArgumentError(
            f"Received {received}; expected files or folders, or `-m` and the name of "
            "a module."
        )
    diagnosed = diagnosis.diagnose(values.paths, values.target, values.m)
    if values.format == "text":
        print(verdict.as_text(diagnosed, details=values.details))
    elif values.format == "json":
        print(verdict.as_json(diagnosed))
    else:
        print(formats.WRITERS[values.format](diagnosed.report))
    return int(diagnosed.left > 0)
