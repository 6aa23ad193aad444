"""The parser of one command: groups of flags, one spelling, errors of one line."""

from __future__ import annotations

import argparse
import contextlib
import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from hookbridge import errors
from hookbridge.ground.texts.nearest_names import alike

HIDDEN = argparse.SUPPRESS
_MOST = 2**31 - 1  # as a number of TensorFlow
_METAVARS = {
    "config": "FILE",
    "guests": "FILE",
    "names": "FILE",
    "page": "FILE",
    "target": "VERSION",
    "to": "FOLDER",
}


class Values(argparse.Namespace):
    """The values of a command's flags and arguments, as attributes."""

    given: frozenset[str]
    words: list[str]
    rest: list[str]

    def refuse(self, names: Iterable[str], beside: str, reason: str) -> None:
        """Refuse flags that were given and that the command would not use."""
        for name in names:
            if name in self.given:
                raise errors.InvalidArgumentError(
                    f"Received {beside} and --{name}; expected one of them: {reason}."
                )


class Parser(argparse.ArgumentParser):
    """Parses the flags and arguments of one command.

    A flag's name may be written with dashes or underscores.
    """

    def __init__(self, command: str, usage: str, summary: str, more: str) -> None:
        super().__init__(
            f"hookbridge {command}",
            f"hookbridge {command} {usage}",
            summary,
            more,
            formatter_class=functools.partial(
                argparse.RawDescriptionHelpFormatter, max_help_position=24, width=88
            ),
            argument_default=argparse.SUPPRESS,
            allow_abbrev=False,
            add_help=False,
        )
        self._group: Any = self
        self._defaults_of: dict[str, Any] = {}
        self._argument_as_flag = "--"  # no flag
        self.add_argument("-h", "--help", action="help", help=HIDDEN)

    @property
    def flags(self) -> dict[str, Any]:
        """`{name: argparse action}` of the flags that the help shows."""
        shown = (a for a in self._actions if a.help is not HIDDEN)
        return {a.option_strings[0][2:]: a for a in shown if a.option_strings}

    def group(self, title: str) -> None:
        """Show the flags that are defined from now on under a title."""
        self._group = self.add_argument_group(title)

    def flag(
        self,
        name: str,
        default: object,
        text: str,
        kind: type | Sequence[str] | None = None,
        *,
        least: float = 0,
        aliases: Iterable[str] = (),
    ) -> None:
        """Define one flag; of a boolean the help shows what is not the default."""
        self._defaults_of[name] = default
        kind = type(default) if kind is None else kind
        if kind is bool:
            yes, no = (HIDDEN, text) if default else (text, HIDDEN)
            add = functools.partial(self._group.add_argument, dest=name)
            add(f"--{name}", action="store_true", help=yes)
            add(f"--no_{name}", action="store_false", help=no)
            return
        if default not in (None, [], ""):
            text += f" (default: {default})"
        for spelling in (name, *aliases):
            shown = text if spelling == name else HIDDEN
            reader = _reader(name, kind, least)
            self._group.add_argument(f"--{spelling}", dest=name, help=shown, **reader)

    def fields(
        self, defaults: object, texts: Mapping[str, str], *, least: float = 0
    ) -> None:
        """Define one flag for each named field, of its default's type."""
        for name, text in texts.items():
            self.flag(name, getattr(defaults, name), text, least=least)

    def argument(
        self, name: str, nargs: str | None = None, *, flag: str = "", **keywords: Any
    ) -> None:
        """Define an argument that is not a flag; `flag` may stand before it."""
        self._defaults_of[name] = [] if nargs == "*" else None
        self.add_argument(name, nargs=nargs, help=HIDDEN, **keywords)
        self._argument_as_flag = f"--{flag}"

    def command_line(self) -> None:
        """Define what may follow the flags: a command line, which stays as it is."""
        self.add_argument("rest", nargs=argparse.REMAINDER, help=HIDDEN)

    def values(self, words: Sequence[str]) -> Values:
        """Parse the command's words."""
        values = vars(self.parse_args(list(self._spelled(words))))
        trailing = list(words[len(words) - len(values.get("rest", ())) :])
        trailing = trailing[trailing[:1] == ["--"] :]
        return Values(
            **{**self._defaults_of, **values, "rest": trailing},
            given=frozenset(values),
            words=list(words),
        )

    def error(self, message: str) -> NoReturn:
        """Raise what argparse finds: a wrong value, an unknown flag or argument."""
        nearest = self._nearest_flag(message)
        meant = f"; did you mean `{nearest}`" if nearest else ""
        raise errors.InvalidArgumentError(
            f"{message.removeprefix('argument ')}{meant}; see `{self.prog} --help`."
        )

    def _nearest_flag(self, message: str) -> str:
        """Return the flag that is most like the first unknown one; empty if none is."""
        unknown = re.search(r"^unrecognized arguments:.*?--([\w-]+)", message)
        if unknown is None:
            return ""
        name = unknown[1].replace("-", "_")
        return "".join(f"--{flag}" for flag in alike(name, self.flags, limit=1))

    def _spelled(self, words: Sequence[str]) -> Iterator[str]:
        """Yield the words, with each flag as it was defined."""
        for index, word in enumerate(words):
            name, equals, value = word.partition("=")
            if word == "--":
                yield from words[index:]
                return
            if name.startswith("--"):
                name = f"--{name[2:].replace('-', '_')}"
            if name != self._argument_as_flag:
                yield f"{name}{equals}{value}"
            elif equals:
                yield value


def _reader(name: str, kind: Any, least: float) -> dict[str, Any]:
    """Return what argparse needs to read a flag's value, and how the help shows it."""
    if kind is list:
        return {"type": _listed, "metavar": "A,B"}
    if kind is str:
        return {"metavar": _METAVARS.get(name, name.rpartition("_")[2].upper())}
    if not isinstance(kind, type):
        return {"choices": list(kind), "metavar": "|".join(kind)}

    def read(text: str) -> Any:
        with contextlib.suppress(ValueError):
            if least <= (number := kind(text)) <= _MOST:
                return number
        whole = "a whole number" if kind is int else "a number"
        raise argparse.ArgumentTypeError(
            f"received {text}; expected {whole} from {least:g} to {_MOST}"
        )

    return {"type": read, "metavar": "N" if kind is int else "X"}


def _listed(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
