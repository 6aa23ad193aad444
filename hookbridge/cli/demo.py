"""`hookbridge demo` trains with one list of guests in both loops."""

from __future__ import annotations

from hookbridge.cli import cluster
from hookbridge.cli.parser import Parser, Values
from hookbridge.ground import compat
from hookbridge.jobs.demo.settings import DemoSettings

SUMMARY = "Train a digits classifier in both loops with the same hooks and callbacks."
USAGE = "[--flag=value ...]"
EXAMPLE = "hookbridge demo --local --epochs=5 --model_dir=runs/demo"
NOTE = f"{cluster.NOTE}\nWith --local no server starts."
FIELDS = {
    "epochs": "Maximum number of epochs.",
    "batch_size": "Examples in a step; a multiple of --num_towers times two workers.",
    "num_towers": "Towers of the session loop, in each worker.",
    "model_dir": "Folder for everything that is written; replaces the files of an "
    "earlier demo.",
    "progress": "Show no progress line.",
}


def define_flags(parser: Parser) -> None:
    """Define the command's flags."""
    parser.fields(DemoSettings(), FIELDS, least=1)
    parser.flag("local", False, "Run both loops in this process, without clusters.")
    parser.flag("open", False, "Open report.html in the browser at the end.")
    parser.flag("format", "text", "Format of the report on stdout.", ("text", "json"))


def run(values: Values) -> int:
    """Run the demo; return 1 if a guest did not see the documented events."""
    fields = {name: getattr(values, name) for name in FIELDS}
    if values.local:
        fields["num_trainers"] = 0
    settings = DemoSettings(**fields)
    settings.check()
    compat.installed_tf_version()  # raises without a TensorFlow
    from hookbridge.cli.command import main
    from hookbridge.jobs.demo.demo_run import run_demo

    return run_demo(
        settings,
        lambda flags: main(["train", *flags]),
        as_json=values.format == "json",
        open_page=values.open,
    )
