"""`hookbridge compare`: where a port first differs from a recorded run."""

from __future__ import annotations

import json
from typing import Any

from hookbridge import errors
from hookbridge.cli.parser import Parser, Values
from hookbridge.ground.arguments import why_no_file

SUMMARY = "Say at which step and in which layer a port first differs."
USAGE = "[--flag=value ...] REFERENCE PORT"
EXAMPLE = "hookbridge compare reference/ port/ --page=comparison.html"
NOTE = (
    "Both are folders that `hookbridge record`, `hb.recorder` or `hb.recording` has\n"
    "written. TensorFlow is not imported. Exit code 0 if nothing differs, 1 otherwise."
)


def define_flags(parser: Parser) -> None:
    """Define the command's flags."""
    parser.argument("reference")
    parser.argument("port")
    text = "A JSON file {recorded name: name in the port}, for names that do not match."
    parser.flag("names", None, text, str)
    text = "Relative tolerance of the first loss; other tolerances are multiples of it."
    parser.flag("tolerance", None, text, float)
    parser.flag("page", None, "HTML file to write, with both curves.", str)
    parser.flag("format", "text", "Format of the result.", ("text", "json"))


def run(values: Values) -> int:
    """Print the comparison; return 1 if something differs."""
    from hookbridge.reference.comparison import compare
    from hookbridge.reference.pages import check_page, write_page

    if values.page is not None:
        check_page(values.page)
    names = None if values.names is None else _names(values.names)
    result = compare(
        values.reference, values.port, names=names, tolerance=values.tolerance
    )
    if values.page is not None:
        write_page(result, values.page)
    as_json = values.format == "json"
    print(json.dumps(result.to_json(), indent=2) if as_json else result)
    return int(not result.is_same)


def _names(file: str) -> Any:
    """Return the names in a port for recorded names, read from a JSON file."""
    try:
        with open(file, encoding="utf-8") as stream:
            return json.load(stream)
    except OSError as e:
        raise errors.InvalidArgumentError(
            f"Received --names={file!r}, which {why_no_file(file)}; expected a JSON "
            "file."
        ) from e
    except ValueError as e:
        raise errors.InvalidArgumentError(
            f"Received --names={file!r}, which is not JSON ({e}); expected "
            '{"recorded name": "name in the port"}.'
        ) from e
