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
# What the argument of a command is that reads code.
PATHS = "Python files, notebooks or folders of them"
_METAVARS = {"config": "FILE", "guests": "FILE", "target": "VERSION"}


class Values(argparse.Namespace):
    """The values of a command's flags and arguments, as attributes."""

    given: frozenset[str]
    words: list[str]
    rest: list[str]

    def needed(self, name: str, expected: str) -> Any:
        """The value of an argument that the command cannot do without."""
        if not getattr(self, name):
            raise errors.InvalidArgumentError(
                f"Received no {name}; expected {expected}."
            )
        return getattr(self, name)

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
        # Spelling -> the option, and what the spelling says if that is a boolean.
        self._options: dict[str, tuple[str, str]] = {}
        self.flag("help", False, argparse.SUPPRESS)
        self._options["-h"] = self._options["--help"]

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
    ) -> None:
        """Defines one flag."""
        self._defaults_of[name] = default
        kind = type(default) if kind is None else kind
        option = f"--{name}"
        if kind is bool:
            # The help shows one spelling: the other is what holds by default.
            option = f"--no_{name}" if default else option
            negative = (f"--no_{name}", f"--no{name}")
            self._options.update(dict.fromkeys(negative, (option, "false")))
        elif default not in (None, [], ""):
            text += f" (default: {default})"
        says = "true" if kind is bool else ""
        spellings = [f"--{spelling}" for spelling in (name, *aliases)]
        self._options.update(dict.fromkeys(spellings, (option, says)))
        convert, metavar = _reader(name, kind, least, most)
        self._group.add_argument(
            option,
            type=convert,
            metavar=metavar,
            help=text.replace("%", "%%"),
            dest=name,
        )

    def fields(
        self, defaults: object, texts: Mapping[str, str], least: Mapping[str, float]
    ) -> None:
        """Defines one flag for each named field, of its default's type."""
        for name, text in texts.items():
            self.flag(name, getattr(defaults, name), text, least=least.get(name))

    def argument(self, name: str, nargs: str = "?", *, flag: str = "") -> None:
        """Defines an argument that is no flag: at most one, or with `*` any number.

        It is None, or an empty list, if the user gave none. `flag` may stand before it.
        """
        self._defaults_of[name] = [] if nargs == "*" else None
        self.add_argument(name, nargs=nargs, help=argparse.SUPPRESS)
        if flag:
            self._options[f"--{flag}"] = ("", "")

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
                f"Received the argument {word!r}; expected `{self.usage}`."
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
            is_flag = word.startswith("--") or word == "-h"
            if not is_value and (word == "--" or not is_flag):
                return list(words[:place]), list(words[place + (word == "--") :])
            option, says = self._option(word.partition("=")[0]) or ("", "")
            is_value = bool(option) and not (is_value or says or "=" in word)
        return list(words), []

    def _spelled(self, words: Sequence[str]) -> list[str]:
        """The words, with each flag as it was defined, and a value for each boolean."""
        spelled: list[str] = []
        for place, word in enumerate(words):
            written, equals, value = word.partition("=")
            known = self._option(written)
            if word == "--":
                return [*spelled, *words[place:]]
            if known is None:
                spelled.append(word)
                continue
            option, says = known
            if says and equals and (says == "false" or value.lower() not in _BOOLEANS):
                or_value = (
                    f", {written}=true or {written}=false" if says == "true" else ""
                )
                raise errors.InvalidArgumentError(
                    f"Received {word}; expected {written}{or_value}."
                )
            if says:
                equals, value = "=", value or says
            if option:
                spelled.append(f"{option}{equals}{value}")
            elif equals:
                spelled.append(value)
        return spelled

    def _option(self, written: str) -> tuple[str, str] | None:
        dashes, name = written[:2], written[2:].replace("-", "_")
        return self._options.get(f"{dashes}{name}")


def _help(prog: str) -> argparse.HelpFormatter:
    return argparse.RawDescriptionHelpFormatter(
        prog, max_help_position=_FLAG_WIDTH, width=_WIDTH
    )


def _reader(
    name: str, kind: Any, least: float | None, most: float | None
) -> tuple[Callable[[str], Any], str]:
    """What reads a flag's value, and how the help shows it."""
    if kind is bool:
        return lambda text: _BOOLEANS[text.lower()], ""
    if kind is list:
        return lambda text: [w.strip() for w in text.split(",") if w.strip()], "A,B"
    if kind is str:
        return str, _METAVARS.get(name, name.rpartition("_")[2].upper())
    if not isinstance(kind, type):
        expected = f"one of {', '.join(kind)}"
        return lambda text: _checked(
            text, repr(text), text in kind, expected
        ), "|".join(kind)
    bounds = [] if least is None else [f"at least {least:g}"]
    bounds += [] if most is None else [f"at most {most:g}"]
    expected = " ".join(
        ["a whole number" if kind is int else "a number", " and ".join(bounds)]
    ).strip()

    def read(text: str) -> Any:
        try:
            number = kind(text)
        except ValueError:
            number = math.nan
        low = -math.inf if least is None else least
        fits = low <= number <= (math.inf if most is None else most)
        return _checked(number, text, fits, expected)

    return read, "N" if kind is int else "X"


def _checked(value: Any, text: str, fits: bool, expected: str) -> Any:
    if not fits:
        raise argparse.ArgumentTypeError(f"received {text}; expected {expected}")
    return value
