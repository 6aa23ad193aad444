"""`hookbridge record` runs a TF1 program and records what its trainings do."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from hookbridge import errors
from hookbridge.cli.parser import Parser, Values
from hookbridge.cli.run import define_guests, define_world
from hookbridge.cli.run import run as run_program
from hookbridge.ground.processes import exit_codes
from hookbridge.ground.processes.tf_config import task_of

SUMMARY = "Run a TF1 program, unedited, and record what its training does."
USAGE = "--to=FOLDER [--flag=value ...] PROGRAM.py [ARGUMENT ...]"
EXAMPLE = "hookbridge record --steps=20 --to=reference examples/tf1_script.py"
NOTE = (
    "This is `hookbridge run` with an `hb.recorder` in every training. `hookbridge\n"
    "compare` then says where a port first differs. A second training of the "
    "program\n"
    "is recorded in FOLDER/training-2, and so on. The exit code is 1 if the program\n"
    "succeeded but nothing was recorded."
)


def define_flags(parser: Parser) -> None:
    """Define the command's flags."""
    define_world(parser)
    define_guests(parser)
    parser.flag(
        "to", None, "Folder for the recording; it must not contain one yet.", str
    )
    parser.flag("steps", 20, "Number of training steps to record.", least=1)
    text = "Number of steps between recordings of whole weights."
    parser.flag("weights_every", None, text, int, least=1)
    text = "Record the gradients of all steps as norms, or whole."
    parser.flag("gradients", "norms", text, ("norms", "whole"))
    parser.flag("max_megabytes", 1024, "Maximum size of the recording.", least=1)
    parser.flag("then_stop", False, "Ask the training to stop after these steps.")


def run(values: Values) -> Callable[[], int]:
    """Prepare the program; what is returned runs it in this process."""
    from hookbridge.reference.recordings.recording_writer import (
        new_folder,
        records_here,
    )

    if values.to is None:
        raise errors.InvalidArgumentError(
            "Received no --to; expected a folder for the recording, such as "
            "--to=reference."
        )
    if records_here():
        new_folder(values.to)
    names = ("steps", "weights_every", "gradients", "max_megabytes", "then_stop")
    options = {name: getattr(values, name) for name in names}
    folder = Path(values.to).absolute()  # the program may go to another folder
    program = run_program(values, record=(values.to, options))

    def recorded() -> int:
        exit_codes.ask_at_end(lambda: _check_recorded(folder))
        return program()

    return recorded


def _check_recorded(folder: Path) -> int:
    """Print what was recorded; return the exit code."""
    from hookbridge.reference.ports.replay import described_recording
    from hookbridge.reference.recordings.recording_files import STEPS_FILE, Recording
    from hookbridge.reference.recordings.recording_writer import records_here

    if not records_here():  # a program may make its cluster itself
        print(
            f"hookbridge record: this process has the task {task_of()!r} in a cluster "
            "and records nothing; the chief records its own steps.",
            file=sys.stderr,
        )
        return exit_codes.DONE
    files = [f for f in sorted(folder.glob(f"**/{STEPS_FILE}")) if f.stat().st_size]
    for file in files:
        for line in described_recording(Recording(file.parent)):
            print(f"hookbridge record: {line}", file=sys.stderr)
    if files:
        print(
            "hookbridge record: next: train a port on `hb.replay` of this folder, then "
            "run `hookbridge compare`.",
            file=sys.stderr,
        )
        return exit_codes.DONE
    print(
        f"hookbridge record: nothing was recorded in {str(folder)!r}: no training "
        "step ran in a session, an Estimator or `fit`. For your own loop around "
        "eager steps, use `hb.loops.OwnLoop` with an `hb.recorder`.",
        file=sys.stderr,
    )
    return exit_codes.FAILED
