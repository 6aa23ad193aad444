"""`hookbridge run` runs a TF1 program, unedited, on the installed TensorFlow."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from hookbridge import errors
from hookbridge.cli.parser import HIDDEN, Parser, Values
from hookbridge.ground.arguments import why_no_file

SUMMARY = "Run a TF1 program, unedited, on the installed TensorFlow."
USAGE = "[--flag=value ...] PROGRAM.py [ARGUMENT ...]   or   ... -m MODULE ..."
EXAMPLE = "hookbridge run examples/tf1_script.py"
NOTE = (
    "The program's source decides its Keras, its behaviour and what `import\n"
    "tensorflow` means. One line reports the choice; flags override it. A program\n"
    "may be a notebook (a.ipynb): its cells run in order."
)


def define_flags(parser: Parser) -> None:
    """Define the command's flags."""
    define_world(parser)
    define_guests(parser)


def define_guests(parser: Parser) -> None:
    """Define the flags of guests from outside."""
    text = "A Python file whose `guests` (hooks and callbacks) join every training."
    parser.flag("guests", None, text, str)
    text = "Number of steps in an epoch, for callbacks in sessions and Estimators."
    parser.flag("steps_per_epoch", None, text, int, least=1)


def define_world(parser: Parser) -> None:
    """Define the command line, and the flags that choose the program's TensorFlow."""
    parser.command_line()
    parser.add_argument("-m", action="store_true", default=False, help=HIDDEN)
    parser.flag("keras", None, "The Keras of `tf.keras`.", ("2", "3"))
    parser.flag("v1", False, "Make TensorFlow behave like version 1.")
    parser.flag("v2", False, "Make TensorFlow behave like version 2.")
    text = (
        "Treat these installed packages as TF1 code, in addition to those detected "
        "automatically."
    )
    parser.flag("old_library", [], text)


def run(
    values: Values, record: tuple[str, dict[str, Any]] | None = None
) -> Callable[[], int]:
    """Prepare a program with what joins its trainings; return what runs it here.

    Args:
      values: the flags and the program.
      record: a folder, and the options of the recorder that joins; None for none.
    """
    from hookbridge.old_programs.run.execute import prepare
    from hookbridge.old_programs.run.located import Launch

    _check(values)
    launch = Launch(
        program=values.rest[0],
        arguments=tuple(values.rest[1:]),
        as_module=values.m,
        keras=int(values.keras) if values.keras else None,
        v1=values.v1 if values.v1 or values.v2 else None,
        old_libraries=tuple(values.old_library),
        guests=values.guests and os.path.abspath(values.guests),
        steps_per_epoch=values.steps_per_epoch,
        record=record,
    )
    return prepare(launch)


def _check(values: Values) -> None:
    """Refuse flags that miss each other or exclude each other."""
    if values.guests is not None and not os.path.isfile(values.guests):
        raise errors.InvalidArgumentError(
            f"Received --guests={values.guests!r}, which {why_no_file(values.guests)}; "
            "expected a Python file with `guests`."
        )
    if values.steps_per_epoch is not None and values.guests is None:
        raise errors.InvalidArgumentError(
            f"Received --steps_per_epoch={values.steps_per_epoch} without --guests; "
            "expected both: only guests have epochs."
        )
    if not values.rest or (values.rest[0] == "-" and not values.m):
        raise errors.InvalidArgumentError(
            f"Received {'-' if values.rest else 'no program'}; expected a Python file, "
            "or `-m` and the name of a module."
        )
    if values.v1:
        values.refuse(["v2"], "--v1", "it is another version")
