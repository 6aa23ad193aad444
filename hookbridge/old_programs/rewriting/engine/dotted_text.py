"""A dotted name in the tokens of an older one: comments and lines between them stay."""

from __future__ import annotations

import re

_BETWEEN = r"(?:[\s.\\]|#[^\r\n]*(?=[\r\n]))*"
# A part of a name, with the dot before it and what stands around that.
_PART = re.compile(rf"(?P<around>{_BETWEEN})(?P<name>\w+)")


def rename_text(old: str, new: str) -> str:
    """Return the text of a dotted name that becomes another one.

    The parts that both end with stay as they are, with the lines, comments and spaces
    between them. What stands between the other parts follows the new ones.

    Args:
      old: the text of a dotted name.
      new: the new name.
    """
    parts, old_parts = new.split("."), list(_PART.finditer(old))
    is_name = re.fullmatch(rf"\w+(?:{_BETWEEN}\w+)*", old)
    if re.fullmatch(r"[\w.]+", old) or not (is_name and re.fullmatch(r"[\w.]+", new)):
        return new
    same = 0
    most = min(len(old_parts), len(parts)) - 1
    while same < most and old_parts[-1 - same]["name"] == parts[-1 - same]:
        same += 1
    split = len(old_parts) - same
    head = ".".join(parts[: len(parts) - same])
    between = "".join(part["around"].replace(".", "", 1) for part in old_parts[1:split])
    if "#" not in between:
        between = ""
    return head + between.rstrip(" \t") + old[old_parts[split - 1].end() :]
