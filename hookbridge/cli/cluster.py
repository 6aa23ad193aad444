"""`hookbridge cluster` runs a command in a local cluster of real processes."""

from __future__ import annotations

from collections.abc import Mapping

from hookbridge import errors
from hookbridge.cli.parser import Parser, Values
from hookbridge.ground.imports import extras
from hookbridge.jobs.cluster_config import kubernetes, slurm
from hookbridge.jobs.cluster_config.job_config import read_config
from hookbridge.jobs.cluster_config.job_order import JobOrder
from hookbridge.jobs.loops.tasks.local_cluster import LocalCluster

SUMMARY = "Run a command as a local cluster, once for each task."
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
FIELDS = {
    "num_workers": "Number of workers, in addition to the chief.",
    "num_ps": "Number of parameter servers; they end after all other tasks.",
    # A flag that is on by default: its help is that of `--no_chief`.
    "chief": "Start no chief; worker 0 acts as chief.",
    "evaluator": "Start an evaluator too.",
    "grace_secs": "Seconds that a task has to end after SIGTERM, before SIGKILL.",
    "tf1_flags": "Give each task the flags --ps_hosts, --worker_hosts, --job_name and "
    "--task_index instead of TF_CONFIG; worker 0 acts as chief.",
    "group_stop": "Let tasks of `hookbridge run FILE` end as in TensorFlow, where one "
    "may wait for the others forever.",
    "log_dir": "Folder for the output of each task; hides TensorFlow's startup "
    "messages.",
}


# Flags of a local cluster that have no use elsewhere.
LOCAL = ("chief", "tf1_flags", "group_stop", "log_dir")
# --to -> the flags that have no use there, and why.
UNUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "local": (("name", "image", "volume"), "only a job elsewhere has it"),
    "tfjob": (LOCAL, "a TFJob has no place for it"),
    "jobset": (LOCAL, "a JobSet has no place for it"),
    "slurm": ((*LOCAL, "image", "volume"), "a Slurm script has no place for it"),
}
_SAVE_SECS = 60.0


def define_flags(parser: Parser) -> None:
    """Define the command's flags."""
    parser.command_line()
    parser.fields(LocalCluster(), FIELDS)
    text = (
        "A config.yaml with masterType, workerCount and the like, in place of the "
        "numbers."
    )
    parser.flag("config", None, text, str)
    parser.group("elsewhere")
    text = (
        "Run the command here, or print a Kubernetes manifest or a script for sbatch."
    )
    parser.flag("to", "local", text, tuple(UNUSED))
    parser.flag("name", "hookbridge-job", "The name of the job.")
    parser.flag("image", None, "The container image that has the program.", str)
    text = "CLAIM:/FOLDER, a PersistentVolumeClaim for the model directory."
    parser.flag("volume", "", text)


def run(values: Values) -> int:
    """Run the command, or print what an orchestrator needs to run it."""
    if not values.rest:
        raise errors.InvalidArgumentError(
            "Received no command; expected one after `--`, for example "
            "`hookbridge cluster --num_workers=2 -- python train.py`."
        )
    names, reason = UNUSED[values.to]
    values.refuse(names, f"--to={values.to}", reason)
    machines: Mapping[str, str] = {}
    if values.config is not None:
        reason = "the file says how many tasks there are"
        values.refuse(("num_workers", "num_ps", "chief"), "--config", reason)
        numbers, machines = read_config(values.config)
        values.num_workers, values.num_ps = numbers["worker"], numbers["ps"]
        values.evaluator = values.evaluator or numbers["evaluator"] > 0
    cluster = LocalCluster(**{name: getattr(values, name) for name in FIELDS})
    if not cluster.chief and not cluster.num_workers:
        raise errors.InvalidArgumentError(
            "Received --no_chief and --num_workers=0; expected a chief or a worker."
        )
    if cluster.tf1_flags and cluster.evaluator:
        raise errors.InvalidArgumentError(
            "Received --tf1_flags and --evaluator; expected one of them: these flags "
            "describe only parameter servers and workers."
        )
    if values.to == "local":
        return cluster.run(values.rest)
    return _print(values, cluster.sizes(), machines)


def _print(
    values: Values, numbers: Mapping[str, int], machines: Mapping[str, str]
) -> int:
    """Print the manifest or script of a cluster, in the form that `--to` names."""
    if values.to != "slurm" and not values.image:
        raise errors.InvalidArgumentError(
            f"Received --to={values.to} without --image; expected the container image "
            "that has the program."
        )
    order = JobOrder(
        numbers,
        machines,
        tuple(values.rest),
        values.name,
        values.image or "",
        values.grace_secs if "grace_secs" in values.given else _SAVE_SECS,
        values.volume,
    )
    if values.to == "slurm":
        print(slurm.script(order), end="")
        return 0
    yaml = extras.load("yaml", f"--to={values.to}")
    manifest = (kubernetes.tfjob if values.to == "tfjob" else kubernetes.jobset)(order)
    # Each leaf and each value is in one line.
    form = {"sort_keys": False, "width": 10**6, "default_flow_style": None}
    print(yaml.safe_dump(manifest, **form), end="")
    return 0
