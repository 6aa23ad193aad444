"""The parser of one command: groups of flags, one spelling, errors of one line."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from hookbridge import errors, names

_WIDTH, _FLAG_WIDTH = 88, 24
_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False}
_BOOLEANS["no"] = False
_METAVARS = {"config": "FILE", "guests": "FILE", "target": "VERSION"}


class Values(argparse.Namespace):
    """The values of a command's flags and arguments, as attributes."""

    given: frozenset[str]
    words: list[str]
    rest: list[str]

    def fields(self, names: Iterable[str]) -> dict[str, Any]:
        """The values of some flags by name, without those that are None."""
        fields = {name: getattr(self, name, None) for name in names}
        return {name: value for name, value in fields.items() if value is not None}

    def refuse(self, names: Iterable[str], beside: str, reason: str) -> None:
        """Refuses flags that were given and that the command would not use."""
        for name in names:
            if name in self.given:
                raise errors.InvalidArgumentError(
                    f"Received {beside} and --{name}; expected one of them: {reason}."
                )


class Parser(argparse.ArgumentParser):
    """Parses the flags and arguments of one command.

    A flag's name may be written with dashes or underscores, and a boolean flag as
    `--x`, `--no_x`, `--nox` or `--x=false`.
    """

    def __init__(self, command: str, usage: str, summary: str, more: str) -> None:
        super().__init__(
            f"hookbridge {command}",
            f"hookbridge {command} {usage}",
            summary,
            more,
            formatter_class=_help,
            argument_default=argparse.SUPPRESS,
            allow_abbrev=False,
            add_help=False,
        )
        self._group: Any = self
        self._defaults_of: dict[str, Any] = {}
        self._aliases: dict[str, str] = {}
        self._booleans: set[str] = set()
        self.flag("help", False, "Print this help.", hidden=True)

    @property
    def flags(self) -> dict[str, Any]:
        """`{name: argparse action}` of the flags that the help shows."""
        shown = (a for a in self._actions if a.help is not argparse.SUPPRESS)
        return {a.option_strings[0][2:]: a for a in shown if a.option_strings}

    def group(self, title: str) -> None:
        """Flags that are defined from now on are shown under a title."""
        self._group = self.add_argument_group(title)

    def flag(
        self,
        name: str,
        default: Any,
        text: str,
        kind: type | Sequence[str] | None = None,
        *,
        least: float | None = None,
        most: float | None = None,
        aliases: Iterable[str] = (),
        hidden: bool = False,
    ) -> None:
        """Defines one flag."""
        self._defaults_of[name] = default
        self._aliases.update(dict.fromkeys(aliases, name))
        kind = type(default) if kind is None else kind
        if kind is not bool and default not in (None, [], ""):
            text += f" (default: {default})"
        shown = argparse.SUPPRESS if hidden else text.replace("%", "%%")
        if kind is bool:
            # The help shows one of the two: the other is what holds by default.
            for spelling, action, hides in (
                (f"--{name}", "store_true", default),
                (f"--no_{name}", "store_false", not default),
            ):
                self._group.add_argument(
                    spelling,
                    action=action,
                    dest=name,
                    default=argparse.SUPPRESS,
                    help=argparse.SUPPRESS if hides else shown,
                )
            self._booleans.add(name)
            return
        convert, metavar = _reader(name, kind, least, most)
        self._group.add_argument(
            f"--{name}", type=convert, metavar=metavar, help=shown, dest=name
        )

    def fields(
        self, defaults: object, texts: Mapping[str, str], least: Mapping[str, float]
    ) -> None:
        """Defines one flag for each named field, of its default's type."""
        for name, text in texts.items():
            self.flag(name, getattr(defaults, name), text, least=least.get(name))

    def argument(self, name: str, nargs: str | None = None) -> None:
        """Defines an argument that is no flag: one, `?` for at most one, `*` for all.

        It is None, or an empty list, if the user gave none.
        """
        self._defaults_of[name] = [] if nargs == "*" else None
        self.add_argument(name, nargs=nargs or "?", help=argparse.SUPPRESS)

    def values(self, words: Sequence[str], *, own_flags_only: bool = False) -> Values:
        """Parses the command's words."""
        own, rest = self._split(words) if own_flags_only else (list(words), [])
        flags, unknown = self.parse_known_args(self._spelled(own))
        if unknown:
            self._refuse_unknown(unknown[0])
        return Values(
            **{**self._defaults_of, **vars(flags)},
            given=frozenset(vars(flags)),
            words=list(words),
            rest=rest,
        )

    def error(self, message: str) -> NoReturn:
        """Called by argparse for a wrong value."""
        raise errors.InvalidArgumentError(message.removeprefix("argument ") + ".")

    def _refuse_unknown(self, word: str) -> NoReturn:
        if not word.startswith("-"):
            raise errors.InvalidArgumentError(
                f"Received the argument {word!r}; expected flags only. See "
                f"`{self.prog} --help`."
            )
        name = word.partition("=")[0].lstrip("-")
        near = ", ".join(f"--{n}" for n in names.nearest(name, self.flags, limit=3))
        raise errors.InvalidArgumentError(
            f"Received the unknown flag --{name}; the nearest: {near or '--help'}. See "
            f"`{self.prog} --help`."
        )

    def _split(self, words: Sequence[str]) -> tuple[list[str], list[str]]:
        """The command's own flags, and the words from the first that is none."""
        is_value = False
        for place, word in enumerate(words):
            if word == "--" and not is_value:
                return list(words[:place]), list(words[place + 1 :])
            if not is_value and not word.startswith("--") and word != "-h":
                return list(words[:place]), list(words[place:])
            name, boolean = self._name(word.partition("=")[0])
            is_value = not is_value and "=" not in word and boolean is None
            is_value = is_value and name in self._defaults_of
        return list(words), []

    def _spelled(self, words: Sequence[str]) -> list[str]:
        """The words, with each flag's name as it was defined."""
        spelled: list[str] = []
        for place, word in enumerate(words):
            if word == "--":
                return [*spelled, *words[place:]]
            written, equals, value = word.partition("=")
            name, boolean = self._name(written)
            if boolean is None:
                spelled.append(f"--{name}{equals}{value}" if name else word)
                continue
            if equals:
                if value.lower() not in _BOOLEANS or not boolean:
                    raise errors.InvalidArgumentError(
                        f"Received {word}; expected {written}"
                        + (f", {written}=true or {written}=false." if boolean else ".")
                    )
                boolean = _BOOLEANS[value.lower()]
            spelled.append(f"--{name}" if boolean else f"--no_{name}")
        return spelled

    def _name(self, written: str) -> tuple[str, bool | None]:
        """A flag's name, empty if unknown, and what it says if it is a boolean."""
        if written == "-h":
            return "help", True
        plain = written[2:].replace("-", "_") if written.startswith("--") else ""
        plain = self._aliases.get(plain, plain)
        for name, value in ((plain, True), (plain[2:].lstrip("_"), False)):
            if name in self._booleans and (value or plain.startswith("no")):
                return name, value
        return (plain if plain in self._defaults_of else ""), None


def _help(prog: str) -> argparse.HelpFormatter:
    return argparse.RawDescriptionHelpFormatter(
        prog, max_help_position=_FLAG_WIDTH, width=_WIDTH
    )


def _reader(
    name: str, kind: Any, least: float | None, most: float | None
) -> tuple[Callable[[str], Any], str]:
    """What reads a flag's value, and how the help shows it."""
    if not isinstance(kind, type):
        return _one_of(kind), "|".join(kind)
    if kind is list:
        return lambda text: [w.strip() for w in text.split(",") if w.strip()], "A,B"
    if kind is str:
        return str, _METAVARS.get(name, name.rpartition("_")[2].upper())
    return _number(kind, least, most), "N" if kind is int else "X"


def _one_of(choices: Sequence[str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in choices:
            raise argparse.ArgumentTypeError(
                f"received {text!r}; expected one of {', '.join(choices)}"
            )
        return text

    return read


def _number(
    kind: type, least: float | None, most: float | None
) -> Callable[[str], float]:
    bounds = [] if least is None else [f"at least {least:g}"]
    bounds += [] if most is None else [f"at most {most:g}"]
    what = "a whole number" if kind is int else "a number"
    wanted = " ".join([what, *bounds[:1]] + [f"and {b}" for b in bounds[1:]])

    def read(text: str) -> float:
        try:
            number: float = kind(text)
        except ValueError:
            number = math.nan
        too_small = least is not None and not number >= least
        too_large = most is not None and not number <= most
        if math.isnan(number) or too_small or too_large:
            raise argparse.ArgumentTypeError(f"received {text}; expected {wanted}")
        return number

    return read
