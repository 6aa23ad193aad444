"""Lines of progress that a process writes again and again on a terminal."""

from __future__ import annotations

# Goes to the start of the line and clears it.
CLEAR = "\r\x1b[K"
# The variable is set by `hookbridge cluster` on a terminal: it shows the lines that its
# tasks rewrite.
VARIABLE = "HOOKBRIDGE_LIVE_LINES"
