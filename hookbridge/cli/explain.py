"""`hookbridge explain` shows what a loop would do with the guests of a file."""

from __future__ import annotations

import json
from typing import Any

from hookbridge.cli import job_flags
from hookbridge.cli.parser import Parser, Values
from hookbridge.ground import compat
from hookbridge.ground.processes import exit_codes
from hookbridge.jobs.training.file_text import MODELS, check_file
from hookbridge.jobs.training.training_settings import LOOPS

SUMMARY = "Show what a loop would deliver to each hook and callback of a file."
USAGE = "[--flag=value ...] FILE.py[:LIST]"
EXAMPLE = "hookbridge explain examples/digits_keras.py --loop=fit"
NOTE = (
    "LIST is the name of a list in the file, or of a function that returns it;\n"
    "`guests` by default. With --loop the file is a model definition file."
)
HOSTS = ("session", "fit", "parameter_server")


def define_flags(parser: Parser) -> None:
    """Define the command's flags."""
    parser.argument("file", flag="model_def")
    parser.flag("host", "session", "The loop that would run the list.", HOSTS)
    text = "The loop of `hookbridge train`; use it instead of --host."
    parser.flag("loop", None, text, LOOPS)
    text = "Parameter servers of the training, with --loop."
    parser.flag("num_ps", 0, text, least=0)
    text = "Show each event of each guest and its cost."
    parser.flag("details", False, text)
    parser.flag("format", "text", "Format of the report.", ("text", "json"))


def run(values: Values) -> int:
    """Print the report; return 2 if the loop would refuse a guest."""
    if values.loop is not None:
        reason = "--loop says which host runs a model definition file"
        values.refuse(("host",), "--loop", reason)
        guests, host = _read_definition(values)
    else:
        values.refuse(("num_ps",), "no --loop", "only a training has servers")
        guests, host = _read_list(values.file), values.host
    from hookbridge.insight.explanation import explain

    report = explain(guests, host=host)
    if values.format == "json":
        print(json.dumps(report.to_json(), indent=2))
    else:
        print(report.details() if values.details else report)
    # A refused guest is bad input: its training would not begin.
    is_refused = any(guest.verdict == "refused" for guest in report.guests)
    return exit_codes.USAGE if is_refused else exit_codes.DONE


def _read_list(place: str) -> Any:
    """Return the list that `FILE.py` or `FILE.py:LIST` names."""
    file, colon, name = place.rpartition(":")
    if not colon or not name.isidentifier():
        file, name = place, "guests"
    check_file(file, [name])
    compat.installed_tf_version()  # else the file would be blamed for its imports
    from hookbridge.jobs.training import user_file

    return user_file.find_guests(user_file.load_file(file), name)


def _read_definition(values: Values) -> tuple[list[Any], Any]:
    """Return the guests for training of a model definition file, and their host."""
    check_file(values.file, MODELS)
    job_flags.use_keras_of_graphs()
    from hookbridge.jobs.loops.towers.spec import TRAIN
    from hookbridge.jobs.training import user_file
    from hookbridge.jobs.training.definition import ModelDefinition

    definition = ModelDefinition(user_file.load_file(values.file))
    host = "session"
    if values.loop == "fit":
        host = "parameter_server" if values.num_ps else "fit"
    return definition.guests(TRAIN), host
