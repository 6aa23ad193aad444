"""Flags of the commands that run a model definition file: `train` and its like."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hookbridge import compat, errors, exit_codes
from hookbridge.cli.parser import Parser, Values
from hookbridge.cluster import ClusterConfig
from hookbridge.cluster_checks import CHIEF_TYPES
from hookbridge.training.settings import LOOPS, TrainingSettings

# Group -> flag -> help, and its type where the default is None. The defaults are those
# of `TrainingSettings`.
_FLAGS: dict[str, dict[str, tuple[str, Any]]] = {
    "": {
        "loop": (
            "Which loop runs it; by default fit for `custom_model`, estimator for "
            "`model_fn`.",
            LOOPS,
        )
    },
    "data": {
        "train_files": ("Training data: files, patterns, folders; with commas.", list),
        "eval_files": ("Data of the evaluation: files, patterns, folders.", list),
        "predict_files": ("Data of the prediction: files, patterns, folders.", list),
        "header_lines": ("Lines at the top of text files that are no data.", None),
        "bad_rows": ("What a broken row does: skip counts it.", ("stop", "skip")),
        "train_batch_size": ("Examples in a step of one process.", None),
        "eval_batch_size": ("Examples in a batch of evaluation and prediction.", None),
    },
    "length": {
        "epochs": ("Ends the training after so many epochs.", int),
        "steps_per_epoch": ("Steps of an epoch; counted by default.", int),
        "train_steps": ("Ends the training at this global step.", int),
    },
    "cluster": {
        "num_towers": ("GPUs, or else CPUs, of a process that share each batch.", None),
        "batch_per_tower": ("Each tower gets a batch of its own.", None),
        "num_workers": ("Processes that train.", None),
        "num_ps": ("Parameter servers.", None),
        "sync": ("The workers make one update together.", None),
    },
    "output": {
        "model_dir": ("Where checkpoints and logs go.", str),
        "seed": ("Of initial weights and random operations.", int),
        "progress": ("No line that says how far it is.", None),
        "report": ("Record what each guest sees and costs, for report.html.", None),
    },
}
# The flags of a command that reads data with the newest checkpoint, besides its files.
_READING = ("loop", "header_lines", "bad_rows", "eval_batch_size", "model_dir", "seed")
_LEAST = {"header_lines": 0, "num_ps": 0, "seed": 0}
# What gcloud's AI Platform and programs written for it call them.
_ALIASES = {
    "model_dir": ("job_dir",),
    "train_files": ("data_dir",),
    "train_steps": ("max_steps",),
    "num_towers": ("num_gpus",),
}
# Errors of a run that had begun: they are no errors in usage.
_RUNS = (
    errors.LiveModelError,
    errors.LiveSessionError,
    errors.NeverCalledError,
    errors.ClusterError,
)


def define(parser: Parser, files: str = "") -> None:
    """Defines the flags of `train`, or of a command that reads the files of a flag."""
    parser.argument("file", flag="model_def")
    for title, flags in _FLAGS.items():
        if files:
            names = [name for name in flags if name in (files, *_READING)]
        else:
            names = [name for name in flags if name != "predict_files"]
        if title and names:
            parser.group(title)
        for name in names:
            _define(parser, name, *flags[name])
    parser.flag("format", "text", "How the result is printed.", ("text", "json"))


def _define(parser: Parser, name: str, text: str, kind: Any) -> None:
    default = TrainingSettings.__dataclass_fields__[name].default
    parser.flag(
        name,
        None if default in ((), "") else default,
        text,
        kind,
        least=_LEAST.get(name, 1),
        aliases=_ALIASES.get(name, ()),
    )


def file_of(values: Values) -> str:
    """The model definition file."""
    example = "`hookbridge train examples/digits_keras.py`"
    return str(
        values.needed("file", f"one model definition file, for example {example}")
    )


def settings_of(values: Values) -> TrainingSettings:
    """The settings that the flags describe."""
    fields: dict[str, Any] = {"model_def": file_of(values)}
    for name in TrainingSettings.__dataclass_fields__:
        value = getattr(values, name, None)
        if value is not None:
            fields[name] = tuple(value) if isinstance(value, list) else value
    return TrainingSettings(**fields)


def run_job(values: Values, act: Callable[[Any], None], command: str) -> int:
    """Runs one command on a model definition file in this process."""
    settings = settings_of(values)
    settings.check()
    use_keras_of_graphs()
    from hookbridge.cli import estimator_cluster
    from hookbridge.loops.tasks.ports import check_own_port
    from hookbridge.training import user_file
    from hookbridge.training.console import hook_lines
    from hookbridge.training.job import TrainingJob

    lines = hook_lines(to_stderr=values.format == "json")
    with lines, estimator_cluster.for_estimator() as cluster:
        module = user_file.load_file(settings.model_def)
        settings = with_loop(settings, module)
        settings.check()
        if cluster.task_type in cluster.cluster:
            check_own_port(cluster)
        job: Any = None
        try:
            job = TrainingJob(module, settings, cluster)
            act(job)
        except (Exception, SystemExit) as e:
            if isinstance(e, errors.HookBridgeError) and not isinstance(e, _RUNS):
                raise
            code = exit_codes.of_error(e)
            if isinstance(e, SystemExit) and (
                exit_codes.may_retry(code) or (not code and settings.loop == "fit")
            ):
                return code  # of the job, which has said why
            if job is None:
                message = user_file.message_of(settings.model_def, e, command)
            else:
                message = job.message_of(e, command)
            print(message, file=sys.stderr)
            return code or exit_codes.FAILED
    return 0


def run_here_or_in_cluster(
    values: Values, act: Callable[[Any], None], name: str
) -> int:
    """`run_job` in this process, or in each process of a local cluster.

    Where there is a `TF_CONFIG`, this process is a task of that cluster.
    """
    settings = settings_of(values)
    if os.environ.get("TF_CONFIG"):
        _check_sizes(values)
    elif settings.num_ps:
        return _run_in_cluster(values, settings, name)
    return run_job(values, act, name)


def _run_in_cluster(values: Values, settings: TrainingSettings, name: str) -> int:
    settings.check()
    if settings.loop is None:
        use_keras_of_graphs()
        from hookbridge.training import user_file

        settings = with_loop(settings, user_file.load_file(settings.model_def))
    from hookbridge.loops.tasks.local_cluster import LocalCluster

    beside = settings.num_workers - (settings.loop != "fit")  # `fit` has a coordinator
    cluster = LocalCluster(num_workers=beside, num_ps=settings.num_ps)
    return cluster.run([sys.executable, "-m", "hookbridge", name, *values.words])


def with_loop(settings: TrainingSettings, module: Any) -> TrainingSettings:
    """The settings with a loop: by default one that can run the file as it is."""
    if settings.loop is not None:
        return settings
    has_keras_model = hasattr(module, "custom_model")
    return replace(settings, loop="fit" if has_keras_model else "estimator")


def _check_sizes(values: Values) -> None:
    """Raises if the flags tell another cluster than `TF_CONFIG`."""
    config = ClusterConfig.from_environment().with_chief()
    jobs = ("worker",) if values.loop == "fit" else (*CHIEF_TYPES, "worker")
    workers = sum(len(config.cluster.get(job, ())) for job in jobs)
    sizes = {"num_workers": workers or 1, "num_ps": len(config.cluster.get("ps", ()))}
    for name, size in sizes.items():
        if name in values.given and getattr(values, name) != size:
            raise errors.InvalidArgumentError(
                f"Received --{name}={getattr(values, name)}, and TF_CONFIG says "
                f"{size}; expected one of them: this process is a task of TF_CONFIG's "
                "cluster."
            )


def use_keras_of_graphs() -> None:
    """Makes `tf.keras` Keras 2, which all loops can run, if that is still open.

    TF_USE_LEGACY_KERAS=0 keeps Keras 3, for `--loop=fit`.
    """
    if "tensorflow" in sys.modules or compat.installed_tf_version() < (2, 16):
        return
    if importlib.util.find_spec("tf_keras") is not None:
        os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
