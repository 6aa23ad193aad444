"""Writes docs/reference/command-line.md: the help of each command."""

from __future__ import annotations

from pathlib import Path

from hookbridge.cli import command

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "command-line.md"
HEAD = """# Command line

`python -m hookbridge` is the same as `hookbridge`. Exit codes: 0 for success, 1 if the
job itself found something wrong, 2 for bad input, with one line that says which, 130
after Ctrl-C, 141 if the reader of the output has gone. `cluster` and `run` end with the
exit code of what they ran, `train` with that of its
[job](../your-cluster.md#exit-codes). The page is written by
`tests/helpers/write_command_line.py`.
"""


def page() -> str:
    """The whole page in Markdown."""
    parts = [HEAD, f"```text\n{command.usage()}\n```\n"]
    for name in command.COMMANDS:
        _, parser = command.parser_of(name)
        text = parser.format_help().rstrip()
        parts.append(f"## `hookbridge {name}`\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
