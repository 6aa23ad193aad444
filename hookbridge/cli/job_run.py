"""Runs a command on a model definition file, here or in a local cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hookbridge import errors
from hookbridge.cli import job_flags
from hookbridge.cli.parser import Values
from hookbridge.ground.arguments import writable
from hookbridge.ground.processes import exit_codes
from hookbridge.ground.processes.tf_config import ClusterConfig
from hookbridge.jobs.training.file_text import MODELS, check_file
from hookbridge.jobs.training.training_settings import TrainingSettings

# Errors of a run that had begun: they are not errors in usage.
_ERRORS_OF_A_RUN = (
    errors.LiveModelError,
    errors.LiveSessionError,
    errors.NeverCalledError,
    errors.ClusterError,
)


def run_job(values: Values, act: Callable[[Any], None], command: str) -> int:
    """Run one command on a model definition file in this process."""
    return _run_here(values, _checked_settings(values), act, command)


def _checked_settings(values: Values) -> TrainingSettings:
    """Return the settings; before TensorFlow is imported, check them and the file."""
    settings = job_flags.settings_of(values)
    settings.check()
    writable(settings.model_dir, name="--model_dir")
    check_file(settings.model_def, MODELS)
    return settings


def _run_here(
    values: Values, settings: TrainingSettings, act: Callable[[Any], None], command: str
) -> int:
    """Run one command with settings that are checked; return its exit code."""
    job_flags.use_keras_of_graphs()
    from hookbridge.jobs.loops.tasks.ports import check_own_port
    from hookbridge.jobs.training import user_file
    from hookbridge.jobs.training.job import TrainingJob
    from hookbridge.jobs.training.summary import hook_lines

    cluster = _cluster_of_process()
    with hook_lines(to_stderr=values.format == "json"):
        module = user_file.load_file(settings.model_def)
        settings = _with_loop(settings, module)
        if cluster.task_type in cluster.cluster:
            check_own_port(cluster)
        job: Any = None
        try:
            job = TrainingJob(module, settings, cluster)
            act(job)
        except KeyboardInterrupt:
            if job is None or command != "train":
                raise
            print(job.interruption(), file=sys.stderr)
            return exit_codes.INTERRUPTED
        except (Exception, SystemExit) as e:
            if isinstance(e, errors.HookBridgeError) and not isinstance(
                e, _ERRORS_OF_A_RUN
            ):
                raise
            return _end_after(e, job, settings, command)
    return 0


def _end_after(
    error: BaseException, job: Any, settings: TrainingSettings, command: str
) -> int:
    """Print why a run has ended, unless its job has; return the exit code."""
    from hookbridge.jobs.training import user_file

    code = exit_codes.of_error(error)
    if isinstance(error, SystemExit) and (
        exit_codes.may_retry(code) or (not code and settings.loop == "fit")
    ):
        return code  # of the job, which has said why
    if job is None:
        message = user_file.message_of(settings.model_def, error, command)
    else:
        message = job.message_of(error, command)
    print(message, file=sys.stderr)
    return code or exit_codes.FAILED


def run_here_or_in_cluster(
    values: Values, act: Callable[[Any], None], name: str
) -> int:
    """Call `run_job` in this process, or in each process of a local cluster.

    If `TF_CONFIG` has a cluster, this process is a task of that cluster.
    """
    settings = _checked_settings(values)
    if settings.num_ps and not ClusterConfig.from_environment().cluster:
        return _run_in_cluster(values, settings, name)
    return _run_here(values, settings, act, name)


def _run_in_cluster(values: Values, settings: TrainingSettings, name: str) -> int:
    """Run the same command in each process of a cluster on this machine."""
    if settings.loop is None:
        job_flags.use_keras_of_graphs()
        from hookbridge.jobs.training import user_file

        settings = _with_loop(settings, user_file.load_file(settings.model_def))
    from hookbridge.jobs.loops.tasks.local_cluster import LocalCluster

    cluster = LocalCluster(num_workers=settings.num_workers, num_ps=settings.num_ps)
    return cluster.run([sys.executable, "-m", "hookbridge", name, *values.words])


def _with_loop(settings: TrainingSettings, module: object) -> TrainingSettings:
    """Return the settings with a loop, by default one that can run the file."""
    if settings.loop is not None:
        return settings
    has_keras_model = hasattr(module, "custom_model")
    settings = replace(settings, loop="fit" if has_keras_model else "estimator")
    settings.check()
    return settings


def _cluster_of_process() -> ClusterConfig:
    """Return the place of this process; rewrites a `TF_CONFIG` that Estimator refuses.

    It refuses a blank value and a cluster without a chief. In such a cluster every task
    takes the first worker for the chief.
    """
    from hookbridge.jobs.loops.tasks.task_checks import check_jobs

    cluster = ClusterConfig.from_environment().with_chief()
    check_jobs(cluster)
    if "TF_CONFIG" in os.environ:
        os.environ["TF_CONFIG"] = cluster.to_json() if cluster.cluster else "{}"
    return cluster
