"""Source that is Python 2: told by the line at which Python 3 stops."""

from __future__ import annotations

import re

# The package has `2to3`, which Python itself removed in 3.13.
FROM_PYTHON_2 = (
    "`pip install fissix` and `python -m fissix -w FILE` make Python 3 of it"
)
# What Python 3 says of a statement that Python 2 had, wherever it stands in its line.
_MESSAGES = (
    "Missing parentheses in call to 'print'",
    "Missing parentheses in call to 'exec'",
    "leading zeros in decimal integer literals",
    "multiple exception types must be parenthesized",
)
_LINES = re.compile(
    r"^(?:print|exec)\s+[^\s=(]"
    r"|^except\s.+,\s*\w+\s*:"
    r"|^raise\s+[\w.]+\s*,"
    r"|<>"  # `!=`
    r"|`[\w.()\[\]]+`"  # `repr`
    r"|\b(?:0[xX][\da-fA-F]+|\d+)[lL]\b"  # a long number
    r"|\b[uU][rR]['\"]"
    r"|^def\s+\w+\(.*\([\w\s,]+\).*\)\s*:"  # an argument that is taken apart
    r"|\blambda\s*\("
)


def is_python_2(error: SyntaxError) -> bool:
    """Return whether what Python 3 cannot parse is Python 2."""
    text = (error.text or "").strip()
    return error.msg.startswith(_MESSAGES) or bool(_LINES.search(text))
