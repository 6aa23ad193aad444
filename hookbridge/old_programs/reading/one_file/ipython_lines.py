"""What is IPython's own in the code of a cell, such as `%matplotlib inline` or `!pip`.

In a module of Python, names that nobody binds stand for such lines; `lines` has them,
by number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hookbridge.tf1_names.parsing import parse_source

_LINE = "__hookbridge_line_{}__"
_MARK = re.compile(r"__hookbridge_line_(\d+)__")
_IPYTHON = ("%", "!", "?")
# `files = !ls` and `took = %timeit -o f()`.
_ASSIGNED = re.compile(r"(\s*[\w.,\[\]'\" ]+=\s*)([!%].*)")
_HELP = re.compile(r"\s*%{0,2}[\w.*]+\?{1,2}\s*")
_VERSION_1 = r"(?:(?:[=~]=|<=?)\s*1\b|<\s*2(?:\.0)*(?![.\d]))"
# A line that asks for TensorFlow 1.
_OLD_PIN = re.compile(
    r"%tensorflow_version\s+1"
    r"|%load_ext\s+hookbridge\b"
    r"|[!%]\s*(?:\S+ -m )?pip3?\s+install\b.*\btensorflow(?:[-_][cg]pu)?\s*"
    + _VERSION_1
)

# Lines that import a package.
_IMPORTING = re.compile(r"%(?:(?P<drawing>matplotlib|pylab)|load_ext\s+(?P<name>\w+))")
# Extensions that IPython brings.
_EXTENSIONS = frozenset({"autoreload", "storemagic"})


def with_lines(text: str, lines: Sequence[str]) -> str:
    """Return a text with the lines themselves, in place of their names."""
    return _MARK.sub(lambda match: lines[int(match[1])], text)


def has_lines(text: str) -> bool:
    """Return whether names of IPython's lines stand in a text."""
    return _MARK.search(text) is not None


def old_pins(text: str, lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the rows of a text, from 1 on, that ask for TensorFlow 1, and how."""
    for number, row in enumerate(text.split("\n"), 1):
        for mark in _MARK.finditer(row):
            line = lines[int(mark[1])]
            if _OLD_PIN.match(line):
                yield number, line


def packages(lines: Sequence[str]) -> Iterator[str]:
    """Yield the packages that lines import: `%matplotlib inline` imports Matplotlib."""
    for line in lines:
        if (match := _IMPORTING.match(line)) and match["name"] not in _EXTENSIONS:
            yield match["name"] or "matplotlib"


def plain(code: str) -> str:
    """Return a cell's code with plain line ends, without IPython's indent."""
    code = code.replace("\r\n", "\n")
    indent = re.match(r"[ \t]*", code)
    return re.sub(f"^{indent[0]}", "", code, flags=re.M) if indent else code


def as_python(code: str, lines: list[str]) -> str | SyntaxError:
    """Return a cell's code with names for IPython's lines, or what is wrong with it.

    These lines are added to `lines`.
    """
    code = plain(code)
    if "__hookbridge_" in code or "\r" in code:
        return SyntaxError("a carriage return alone, or a name of hookbridge's own")
    code = code if code.endswith("\n") or not code else f"{code}\n"
    taken, rows, error = len(lines), code.split("\n"), _error(code)
    # `% x` may begin a line of Python too, so only lines at which Python stops change.
    while error is not None and 0 < (error.lineno or 0) <= len(rows):
        if not _replace(rows, error.lineno or 1, lines):
            break
        error = _error("\n".join(rows))
    if error is None:
        return "\n".join(rows)
    del lines[taken:]
    return error


def _replace(rows: list[str], number: int, lines: list[str]) -> bool:
    """Replace IPython's part of a line by a name; return whether there is one.

    A line that ends with a backslash takes the next one along.
    """
    row = rows[number - 1]
    stripped = row.lstrip()
    before, code = row[: len(row) - len(stripped)], stripped
    if match := _ASSIGNED.fullmatch(row):
        before, code = match[1], match[2]
    elif not (stripped.startswith(_IPYTHON) or _HELP.fullmatch(row)):
        return False
    while True:
        rows[number - 1] = before + _LINE.format(len(lines))
        lines.append(code)
        if not code.endswith("\\") or before.strip() or number == len(rows):
            return True
        number += 1
        code = rows[number - 1].removeprefix(before)


def _error(code: str) -> SyntaxError | None:
    try:
        parse_source(code)
    except SyntaxError as e:
        return e
    except ValueError as e:  # a null byte, before Python 3.12
        return SyntaxError(str(e))
    return None
