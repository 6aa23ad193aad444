"""`hookbridge doctor`: what a TensorFlow lacks of a program, and who mends it."""

from __future__ import annotations

from hookbridge.cli.parser import Parser, Values
from hookbridge.cli.streams import escape_unknown
from hookbridge.old_programs.names.target import NEWEST

SUMMARY = "Say what a program needs that TensorFlow lacks, and what is left to you."
USAGE = "[--flag=value ...] PATH..."
EXAMPLE = "hookbridge doctor examples/tf1_script.py"
NOTE = (
    "Nothing is run and TensorFlow is not imported. Exit code 1 if something is left\n"
    "to a person: neither `hookbridge run` nor `hookbridge migrate` takes it."
)


def define_flags(parser: Parser) -> None:
    """Defines the command's flags."""
    parser.argument("paths", "+")
    parser.flag("format", "text", "How it is written.", ("text", "json"))
    parser.flag("target", NEWEST, "The TensorFlow that the program shall run on.")


def run(values: Values) -> int:
    """Prints the diagnoses; returns 1 if something is left to a person."""
    escape_unknown()
    from hookbridge.old_programs.scanning import doctor

    needs = doctor.diagnose(values.paths, values.target)
    print(doctor.as_json(needs) if values.format == "json" else doctor.as_text(needs))
    return int(needs.left > 0)
