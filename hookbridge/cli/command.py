"""The `hookbridge` command, which runs one module for each sub-command.

Each sub-command has flags of its own, so several runs in one process do not see each
other's values. TensorFlow is imported when a sub-command starts its work, so `--help`
and errors in flags do not wait for it.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import textwrap
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from absl import flags

from hookbridge import errors
from hookbridge.cli import version

# Name -> module with SUMMARY, USAGE, define_flags(values) and run(values, args). It may
# have EXAMPLE, NOTE and split(words), which returns its own flags and the other words.
COMMANDS = {
    "demo": "hookbridge.cli.demo",
    "train": "hookbridge.cli.train",
    "evaluate": "hookbridge.cli.evaluate",
    "predict": "hookbridge.cli.predict",
    "run": "hookbridge.cli.run",
    "doctor": "hookbridge.cli.doctor",
    "cluster": "hookbridge.cli.cluster",
    "explain": "hookbridge.cli.explain",
    "migrate": "hookbridge.cli.migrate",
    "docs": "hookbridge.cli.docs",
}

_WIDTH = 80
_FLAG_WIDTH = 20
USAGE_ERROR = 2
INTERRUPTED = 130
# A shell's exit code if a reader such as `head` has gone: 128 plus SIGPIPE.
READER_GONE = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a sub-command.

    Args:
      argv: the arguments after the program's name; None takes the process's.

    Returns:
      The exit code: 0 for success, 2 for a bad flag or argument (one line on
      stderr says which), 1 if the job itself found something wrong, 130 after Ctrl-C,
      141 if the reader of the output has gone. `cluster` and `run` return the exit
      code of what they ran.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    if words and words[0] == "--version":
        print(version.text())
        return 0
    if not words or words[0] not in COMMANDS:
        got = f"unknown command {words[0]!r}" if words else "no command given"
        known = ", ".join(COMMANDS)
        return _complain(f"{got}; expected one of: {known}. See `hookbridge --help`.")
    return _run(words[0], words[1:])


def _run(name: str, arguments: list[str]) -> int:
    command = importlib.import_module(COMMANDS[name])
    values = flags.FlagValues()
    flags.DEFINE_boolean("help", False, "Print this help.", flag_values=values)
    command.define_flags(values)
    split = getattr(command, "split", None)
    own, others = (arguments, []) if split is None else split(arguments)
    try:
        rest = _parse(values, [f"hookbridge {name}", *own]) + others
        if values.help:
            print(command_help(name, command, values))
            return 0
        found = command.run(values, rest)
        code = 0 if callable(found) else int(found)
        sys.stdout.flush()
    except BrokenPipeError:
        # At exit Python tries again to write what is left; that must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    except (flags.Error, errors.HookBridgeError) as e:
        return _complain(f"{name}: {e}")
    except KeyboardInterrupt:
        _complain(f"{name}: interrupted")
        return INTERRUPTED
    # `hookbridge run`: the program takes over this process, and its errors are its own.
    return int(found()) if callable(found) else code


def _parse(values: Any, words: list[str]) -> list[str]:
    """Sets the flags; returns the arguments that are no flags.

    Raises:
      flags.Error: absl's error, as one readable line.
    """
    try:
        return list(values(_spelled(words, values))[1:])
    except (flags.Error, ValueError) as e:
        # absl raises a plain ValueError for `--noflag=value`, and shows the error of a
        # boolean as the tuple of its arguments.
        raise flags.Error(re.sub(r"\('(.*)', .*\)$", r"\1", str(e))) from e


def _spelled(words: list[str], values: Any) -> list[str]:
    """The words, with underscores for dashes in the names of known flags."""
    spelled = list(words)
    for place, word in enumerate(words[1:], 1):
        name, equals, value = word.partition("=")
        before = words[place - 1]
        takes_value = place > 1 and before.startswith("--") and "=" not in before
        if name == "--" or not (name.startswith("--") or takes_value):
            break
        plain = name[2:].replace("-", "_")
        if name.startswith("--") and (plain in values or plain[2:] in values):
            spelled[place] = f"--{plain}{equals}{value}"
    return spelled


def _complain(message: str) -> int:
    """Prints the message on stderr as one line, without its line breaks."""
    print(f"hookbridge: {' '.join(message.split())}", file=sys.stderr)
    return USAGE_ERROR


def usage() -> str:
    """The text of `hookbridge --help`."""
    lines = ["usage: hookbridge COMMAND [--flag=value ...]", "", "commands:"]
    for name, where in COMMANDS.items():
        lines.append(f"  {name:<10} {importlib.import_module(where).SUMMARY}")
    lines += ["", "`hookbridge COMMAND --help` lists the flags of a command."]
    lines += ["`hookbridge --version` prints what a report of a fault needs."]
    return "\n".join(lines)


def command_help(name: str, command: ModuleType, values: Any) -> str:
    """The text of `hookbridge COMMAND --help`."""
    lines = [f"usage: hookbridge {name} {command.USAGE}", "", command.SUMMARY, ""]
    for flag_name in sorted(values):
        flag = values[flag_name]
        if flag_name == "help" or flag.help.startswith("Alias for"):
            continue
        shown = f"--[no]{flag_name}" if flag.boolean else f"--{flag_name}"
        default = flag.default
        text = flag.help
        if default is not None and not (flag.boolean and default is False):
            text += f" (default: {default})"
        lines += textwrap.wrap(
            text,
            _WIDTH,
            initial_indent=f"  {shown:<{_FLAG_WIDTH}} ",
            subsequent_indent=" " * (_FLAG_WIDTH + 3),
        )
    example = getattr(command, "EXAMPLE", "")
    lines += ["", f"example: {example}"] if example else []
    note = getattr(command, "NOTE", "")
    lines += ["", note] if note else []
    return "\n".join(lines)
