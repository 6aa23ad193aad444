"""The text of an import, name by name: what stays keeps its characters and comments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hookbridge.old_programs.reading.one_file.comments import is_mark

# What stands after a name, to the end of its line; no line ends at a backslash.
_TAIL = re.compile(r"(?:[^\r\n\\#]|\\\r?\n)*(?:#[^\r\n]*)?(?:\r?\n)?")


@dataclass
class Name:
    """One name of an import.

    Attributes:
      before: the lines above it that have comments alone, and its indent.
      text: `name` or `name as bound`.
      after: the rest of its line, with the comma.
    """

    before: str
    text: str
    after: str

    @property
    def ends_line(self) -> bool:
        """Return whether the next name has another line."""
        return self.after.endswith("\n")


@dataclass
class ImportText:
    """An import in parts; joined they are its text.

    Attributes:
      head: from the first word to the end of the line of the opening parenthesis, or
        to the first name.
      names: its names, in order.
      close: what stands after the line of the last name.
    """

    head: str
    names: list[Name]
    close: str

    @classmethod
    def of(cls, text: str, spans: Sequence[tuple[int, int]]) -> ImportText:
        """Read an import.

        Args:
          text: the statement.
          spans: where its names begin and end in the text.
        """
        starts = [first for first, _ in spans]
        head = text[: starts[0]]
        line_end = head.find("\n") + 1 if "(" in head else 0
        before = head[line_end:] if line_end else ""
        names, between = [], ""
        for (first, end), following in zip(
            spans, [*starts[1:], len(text)], strict=True
        ):
            gap = text[end:following]
            tail = _TAIL.match(gap)
            after = tail[0] if tail is not None and following < len(text) else ""
            if following == len(text):
                after = _last_tail(gap)
            names.append(Name(before, text[first:end], after))
            before = between = gap[len(after) :]
        return cls(head[:line_end] if line_end else head, names, between)

    def __str__(self) -> str:
        return "".join(
            [self.head, *(n.before + n.text + n.after for n in self.names), self.close]
        )

    def without(self, removed: Iterable[int]) -> ImportText:
        """Return the import without the names at some places and their comments.

        Args:
          removed: the places, not all of them.
        """
        places = set(removed)
        names: list[Name] = []
        for index, name in enumerate(self.names):
            starts_line = names[-1].ends_line if names else self.head.endswith("\n")
            if index not in places:
                is_moved = index - 1 in places and not starts_line
                before = name.before.lstrip() if is_moved else name.before
                names.append(Name(before, name.text, name.after))
            elif names and not starts_line and name.ends_line:
                names[-1].after = names[-1].after.rstrip() + _end(name.after)
        if len(self.names) - 1 in places:
            self._end_with(names[-1], is_alone=len(names) == 1)
        return ImportText(self.head, names, self.close)

    def _end_with(self, last: Name, *, is_alone: bool) -> None:
        """End the import with a name that others followed."""
        is_on_head = not self.head.endswith("\n") and is_alone
        if last.ends_line and not (is_on_head and "#" not in last.after):
            return
        ends_line = self.names[-1].ends_line and not is_on_head
        last.after = f",{_end(self.names[-1].after)}" if ends_line else ""


def comments_of(text: str) -> list[str]:
    """Return the comments in what stands between the names of an import."""
    return re.findall(r"#[^\r\n]*", text)


def statements(
    whole: ImportText, lines: Mapping[int, str], more: Sequence[str], trailing: str
) -> list[str]:
    """Return the lines that an import becomes, with all of its comments.

    A mark for a linter that stood at the import stands at each of them.

    Args:
      whole: the import.
      lines: for each place of a name that leaves it, the statement that takes its
        place; empty for a name that goes.
      more: statements that come after it.
      trailing: what stands behind the import in its line: nothing or a comment.
    """
    stays = len(lines) < len(whole.names)
    around = comments_of(trailing)
    if not stays:
        around = [*comments_of(whole.head), *around, *comments_of(whole.close)]
    marks = [comment for comment in around if is_mark(comment)]
    remarks = [comment for comment in around if comment not in marks]
    written = [
        *_lines_with_comments(whole, lines, marks),
        *("  ".join([m, *marks]) for m in more),
    ]
    if stays:
        return [f"{whole.without(lines)}{trailing}", *written]
    if len(written) == 1 == len(remarks) and "#" not in written[0]:
        return [f"{written[0]}  {remarks[0]}"]
    if not (more or any(lines.values())):
        remarks += marks
    return [*remarks, *written]


def _lines_with_comments(
    whole: ImportText, lines: Mapping[int, str], marks: Sequence[str]
) -> Iterator[str]:
    """Yield the new lines, each with the comments of its name."""
    earlier: set[str] = set()
    for index, line in lines.items():
        name = whole.names[index]
        yield from comments_of(name.before)
        ends = comments_of(name.after)
        if line and line not in earlier:
            earlier.add(line)
            yield "  ".join([line, *dict.fromkeys([*ends, *marks])])
        else:
            yield from ends


def _last_tail(gap: str) -> str:
    """Return what follows the last name in its line, up to a parenthesis."""
    tail = _TAIL.match(gap)
    text = tail[0] if tail is not None else ""
    return text if text.endswith("\n") else gap[: len(gap) - len(gap.lstrip(", \t"))]


def _end(text: str) -> str:
    """Return the end of the line that a text has."""
    return "\r\n" if text.endswith("\r\n") else "\n"
