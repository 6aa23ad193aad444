"""The `hookbridge` command, which runs one module for each sub-command.

TensorFlow is imported when a sub-command starts its work, so `--help` and errors in
flags do not wait for it.
"""

from __future__ import annotations

import errno
import os
import pkgutil
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hookbridge import __version__, errors
from hookbridge.cli.parser import Parser
from hookbridge.cli.streams import open_closed
from hookbridge.ground import compat
from hookbridge.ground.processes import exit_codes
from hookbridge.ground.texts import nearest_names

# Name -> module or object with SUMMARY, USAGE, EXAMPLE, define_flags(parser) and
# run(values). It may have NOTE.
COMMANDS = {
    "demo": "hookbridge.cli.demo",
    "train": "hookbridge.cli.jobs:TRAIN",
    "evaluate": "hookbridge.cli.jobs:EVALUATE",
    "predict": "hookbridge.cli.jobs:PREDICT",
    "run": "hookbridge.cli.run",
    "doctor": "hookbridge.cli.doctor",
    "record": "hookbridge.cli.record",
    "compare": "hookbridge.cli.compare",
    "cluster": "hookbridge.cli.cluster",
    "explain": "hookbridge.cli.explain",
    "migrate scan": "hookbridge.cli.migrate_scan",
    "migrate rewrite": "hookbridge.cli.migrate_rewrite",
    "docs": "hookbridge.cli.docs",
}

_HELP = ("-h", "--help", "help")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a sub-command."""
    open_closed()
    try:
        outcome = _answer(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        return exit_codes.READER_GONE
    except OSError as e:
        if e.errno != errno.ENOSPC or e.filename is not None:
            raise
        _drop_output()
        return _complain(f"the output cannot be written: {e.strerror}")
    # `hookbridge run`: the program takes over this process, and its errors are its own.
    try:
        code = int(outcome() if callable(outcome) else outcome)
    except SystemExit as e:
        if e.code:
            raise
        code = exit_codes.DONE
    return code or exit_codes.of_done()


def _drop_output() -> None:
    """Let Python write what is left into nothing: its second try must not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _answer(words: list[str]) -> int | Callable[[], int]:
    """Run a sub-command; give its exit code, or what is to be run in its place."""
    if words[:1] == ["--version"]:
        print(versions())
        return 0
    for length in (2, 1):
        name = " ".join(words[:length])
        if name in COMMANDS:
            return _run(name, words[length:])
    group = [name for name in COMMANDS if name.startswith(f"{' '.join(words[:1])} ")]
    if group:  # `hookbridge migrate`, and what comes after it
        inner = [name.split()[1] for name in group]
        return _answer_without_command(words[1:], inner, group, f"{words[0]}: ")
    first = dict.fromkeys(name.split()[0] for name in COMMANDS)
    return _answer_without_command(words, first, COMMANDS, "")


def _answer_without_command(
    words: list[str], choices: Iterable[str], commands: Iterable[str], before: str
) -> int:
    """Print the usage of some commands, or say that the words name none of them."""
    if words[:1] and words[0] in _HELP:
        print(usage(commands))
        return 0
    if not words:
        listed = ", ".join(choices)
        return _complain(f"{before}no command given; expected one of: {listed}.")
    nearest = nearest_names.suggestion(words[0], choices, limit=1)
    return _complain(
        f"{before}unknown command {words[0]!r}{nearest}. See `hookbridge --help`."
    )


def parser_of(name: str) -> tuple[Any, Parser]:
    """Return a command's module or object, and its parser with all flags."""
    command = pkgutil.resolve_name(COMMANDS[name])
    more = [f"example: {command.EXAMPLE}", getattr(command, "NOTE", "")]
    text = "\n\n".join(filter(None, more))
    parser = Parser(name, command.USAGE, command.SUMMARY, text)
    command.define_flags(parser)
    return command, parser


def _run(name: str, words: list[str]) -> int | Callable[[], int]:
    """Run one command, and turn its refusals into a message and an exit code."""
    try:
        command, parser = parser_of(name)
        try:
            values = parser.values(words)
        except SystemExit:  # the help is printed
            return 0
        outcome: int | Callable[[], int] = command.run(values)
        return outcome
    except errors.HookBridgeError as e:
        return _complain(f"{name}: {e}")
    except KeyboardInterrupt:
        _complain(f"{name}: interrupted")
        return exit_codes.INTERRUPTED


def _complain(message: str) -> int:
    """Print the message on stderr as one line, without its line breaks."""
    print(f"hookbridge: {' '.join(message.split())}", file=sys.stderr)
    return exit_codes.USAGE


def versions() -> str:
    """Return what a report of a fault needs to say.

    TensorFlow is not imported for it.
    """
    versions = {"hookbridge": __version__, **compat.installed_versions()}
    return "\n".join(f"{name} {version}" for name, version in versions.items())


def usage(names: Iterable[str] = tuple(COMMANDS)) -> str:
    """Return the text of `hookbridge --help`, for all commands or some."""
    modules = {name: pkgutil.resolve_name(COMMANDS[name]) for name in names}
    return "\n".join(
        [
            "usage: hookbridge COMMAND [--flag=value ...]",
            "",
            "TF1 hooks and Keras callbacks, unmodified, in sessions and in fit.",
            "",
            "commands:",
            *(f"  {name:<16} {module.SUMMARY}" for name, module in modules.items()),
            "",
            "`hookbridge COMMAND --help` lists the flags of a command. Commands that",
            "report results accept --format=json.",
            "`hookbridge --version` prints what to include in a bug report.",
        ]
    )
