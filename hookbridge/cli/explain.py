"""`hookbridge explain` shows what a loop would do with the guests of a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hookbridge import errors
from hookbridge.cli import job_flags
from hookbridge.cli.flag_table import define, refuse
from hookbridge.training.settings import LOOPS

SUMMARY = "Show what a loop would deliver to each hook and callback of a file."
USAGE = "[--flag=value ...] FILE.py  or  --model_def=FILE.py --loop=LOOP"
EXAMPLE = "hookbridge explain --model_def=examples/digits_keras.py --loop=fit"
HOSTS = ("session", "fit", "parameter_server")


def define_flags(values: Any) -> None:
    """Defines the command's flags in `values`."""
    define(values, "host", "session", "The loop that would run the guests.", HOSTS)
    text = "Name of the list in the file, or of a function that returns it."
    define(values, "guests", "guests", text)
    text = "A model definition file, with --loop in place of --host."
    define(values, "model_def", None, text, str)
    define(values, "loop", None, "The loop of `hookbridge train`.", LOOPS)
    define(values, "num_ps", 0, "Parameter servers of the training.", lower_bound=0)
    define(values, "json", False, "Print the report as JSON instead of text.")


def run(values: Any, arguments: Sequence[str]) -> int:
    """Prints the report; returns 2 if the loop would refuse a guest."""
    from hookbridge.training import user_file

    if values.model_def is not None:
        if arguments or values.loop is None:
            raise errors.InvalidArgumentError(
                f"Received --model_def and {arguments or 'no --loop'}; expected "
                "--model_def=FILE.py and --loop=towers, fit or estimator."
            )
        reason = (
            "--loop says which host runs a model definition file, and for which list"
        )
        refuse(values, ("host", "guests"), "--model_def", reason)
        guests, host = _of_definition(values)
    elif len(arguments) != 1:
        raise errors.InvalidArgumentError(
            f"Received {len(arguments)} arguments; expected one Python file with a "
            f"list `{values.guests}` of hooks and callbacks."
        )
    else:
        reason = "only --model_def=FILE.py makes use of it"
        refuse(values, ("loop", "num_ps"), f"the file {arguments[0]!r}", reason)
        module = user_file.load_file(arguments[0])
        guests, host = user_file.find_guests(module, values.guests), values.host
    from hookbridge.explanation import explain

    report = explain(guests, host=host)
    print(json.dumps(report.to_json(), indent=2) if values.json else report)
    # A refused guest is bad input: its training would not begin.
    return 2 if any(guest.verdict == "refused" for guest in report.guests) else 0


def _of_definition(values: Any) -> tuple[list[Any], Any]:
    """The guests that a model definition file has for training, and their host."""
    job_flags.use_keras_of_graphs()
    from hookbridge.training import user_file
    from hookbridge.training.definition import TRAIN, ModelDefinition

    definition = ModelDefinition(user_file.load_file(values.model_def))
    host = "session"
    if values.loop == "fit":
        host = "parameter_server" if values.num_ps else "fit"
    return definition.guests(TRAIN), host
