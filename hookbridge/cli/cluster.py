"""`hookbridge cluster` runs a command in a local cluster of real processes."""

from __future__ import annotations

from collections.abc import Sequence

from hookbridge import errors
from hookbridge.cli.parser import Parser, Values
from hookbridge.loops.tasks.local_cluster import LocalCluster

SUMMARY = "Run a command in a local cluster; each task is told its place."
USAGE = "[--flag=value ...] -- COMMAND [ARGUMENT ...]"
EXAMPLE = (
    "hookbridge cluster --num_workers=2 --num_ps=1 -- python train.py\n"
    "         hookbridge cluster --config=config.yaml --to=tfjob --image=me/job \\\n"
    "             -- python train.py > job.yaml"
)
# TensorFlow can neither be told to use one interface only nor to authenticate.
NOTE = (
    "TensorFlow's servers listen on all network interfaces without authentication,\n"
    "although the addresses say localhost: run this where nobody else can connect."
)
RUNS_A_COMMAND = True
FIELDS = {
    "num_workers": "Workers beside the chief.",
    "num_ps": "Parameter servers; ended when all other tasks are done.",
    "chief": "There is no chief; worker 0 is it.",
    "evaluator": "There is an evaluator.",
    "grace_secs": "Seconds a task may take to end after it was told to.",
    "tf1_flags": "Tell tasks by --ps_hosts, --worker_hosts, --job_name and "
    "--task_index at the end of the command, not by TF_CONFIG; the chief is worker 0.",
    "group_stop": "Tasks of `hookbridge run FILE` end as in TensorFlow, where one may "
    "wait for the others for ever.",
}
LEAST = {"num_workers": 0, "num_ps": 0, "grace_secs": 0.0}


def define_flags(parser: Parser) -> None:
    """Defines the command's flags."""
    parser.fields(LocalCluster(), FIELDS, LEAST)
    text = (
        "A config.yaml with masterType, workerCount and the like, in place of the "
        "numbers."
    )
    parser.flag("config", None, text, str)
    text = "Run it here, or print a Kubernetes TFJob manifest of --config."
    parser.flag("to", "local", text, ("local", "tfjob"))
    parser.flag("name", "hookbridge-job", "The TFJob's.")
    parser.flag("image", None, "The TFJob's container.", str)


def run(values: Values) -> int:
    """Runs the command; returns the first exit code that is not 0."""
    if not values.rest:
        raise errors.InvalidArgumentError(
            "Received no command; expected one after `--`, for example "
            "`hookbridge cluster --num_workers=2 -- python train.py`."
        )
    if values.to == "local":
        values.refuse(("name", "image"), "--to=local", "only a TFJob has it")
    if values.config is not None:
        return _run_config(values, values.rest)
    if values.to != "local":
        raise errors.InvalidArgumentError(
            f"Received --to={values.to} without --config; expected the config.yaml "
            "that says which machines the job has."
        )
    return _run_here(values, values.rest)


def _run_here(values: Values, arguments: Sequence[str], **sizes: int) -> int:
    """Runs the command in a local cluster; `sizes` replace the flags of their names."""
    fields = {name: getattr(values, name) for name in FIELDS}
    cluster = LocalCluster(**{**fields, **sizes})
    if not cluster.chief and not cluster.num_workers:
        raise errors.InvalidArgumentError(
            "Received --nochief and --num_workers=0; expected a chief or a worker."
        )
    if cluster.tf1_flags and cluster.evaluator:
        raise errors.InvalidArgumentError(
            "Received --tf1_flags and --evaluator; expected one of them: these flags "
            "know parameter servers and workers only."
        )
    return cluster.run(arguments)


def _run_config(values: Values, arguments: Sequence[str]) -> int:
    """Runs the command on the machines of a `config.yaml`, or prints a manifest."""
    from hookbridge.cluster_config import job_config, tfjob

    reason = "the file says how many tasks there are"
    values.refuse(("num_workers", "num_ps", "chief"), "--config", reason)
    if values.to == "tfjob":
        reason = "a manifest has no place for it"
        values.refuse(("evaluator", "grace_secs", "tf1_flags"), "--to=tfjob", reason)
    config = job_config.read_config(values.config)
    if values.to == "local":
        return _run_here(
            values, arguments, num_workers=config.workers, num_ps=config.servers
        )
    if not values.image:
        raise errors.InvalidArgumentError(
            "Received --to=tfjob without --image; expected the container image that "
            "has the program."
        )
    import yaml

    made = tfjob.manifest(
        config, name=values.name, image=values.image, command=arguments
    )
    print(yaml.safe_dump(made, sort_keys=False), end="")
    return 0
