"""`hookbridge migrate scan`: finds what TF1 code needs on a newer TensorFlow."""

from __future__ import annotations

from hookbridge.cli.parser import Parser, Values
from hookbridge.cli.streams import escape_unknown
from hookbridge.tf1_names.target import NEWEST

SUMMARY = "Find what TF1 code needs on a newer TensorFlow, without changing it."
USAGE = "[--flag=value ...] PATH..."
EXAMPLE = "hookbridge migrate scan --format=html examples > findings.html"
FORMATS = ("text", "json", "sarif", "html")


def define_flags(parser: Parser) -> None:
    """Define the command's flags."""
    parser.argument("paths", "+")
    parser.flag("format", "text", "Format of the report.", FORMATS)
    parser.flag("target", NEWEST, "The TensorFlow version that the code will run on.")
    parser.flag("check", False, "Exit with 1 if anything needs manual work.")


def run(values: Values) -> int:
    """Print the report."""
    escape_unknown()
    from hookbridge.old_programs import scan
    from hookbridge.old_programs.scanning import formats

    report = scan(values.paths, target=values.target)
    print(formats.WRITERS[values.format](report))
    return int(values.check and report.remaining > 0)
