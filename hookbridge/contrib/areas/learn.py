"""`tf.contrib.learn.Experiment` and `learn_runner`, on `train_and_evaluate`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from hookbridge.estimator import restored_package
from hookbridge.jobs.loops.clusters.train_and_evaluate import train_and_evaluate


def _estimator() -> Any:
    return restored_package.namespaces().v1


class TaskType:
    """`tf.contrib.learn.TaskType`."""

    MASTER = "master"
    PS = "ps"
    WORKER = "worker"


class ModeKeys:
    """`tf.contrib.learn.ModeKeys`."""

    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"


class Experiment:
    """An Estimator with its data, hooks and exports.

    Training and evaluation are those of `train_and_evaluate`: each new checkpoint is
    evaluated; in a cluster each process plays its role in `TF_CONFIG`, and all end
    together. The arguments are those of TensorFlow 1.
    """

    # Members of the class, as in TensorFlow 1.
    estimator: Any
    eval_metrics: Any
    train_steps: int | None
    eval_steps: int | None

    def __init__(
        self,
        estimator: object,
        train_input_fn: object,
        eval_input_fn: object,
        eval_metrics: object = None,
        train_steps: int | None = None,
        eval_steps: int | None = 100,
        train_monitors: Any = None,
        eval_hooks: Any = None,
        local_eval_frequency: int | None = None,
        eval_delay_secs: float = 120,
        continuous_eval_throttle_secs: float = 60,
        min_eval_frequency: int | None = None,
        delay_workers_by_global_step: bool = False,
        export_strategies: Any = None,
        train_steps_per_iteration: int | None = None,
        checkpoint_and_export: bool = False,
        saving_listeners: Any = None,
        check_interval_secs: float = 5,
    ) -> None:
        if eval_metrics is not None:
            raise ValueError(
                "`eval_metrics` must be `None` with `tf.estimator.Estimator`. Use "
                "`eval_metric_ops` in `tf.estimator.EstimatorSpec` instead."
            )
        self.estimator = estimator
        self.eval_metrics = eval_metrics
        self.train_steps = train_steps
        self.eval_steps = eval_steps
        self._train_input_fn = train_input_fn
        self._eval_input_fn = eval_input_fn
        self._train_hooks = list(train_monitors or ())
        self._eval_hooks = list(eval_hooks or ())
        self._listeners = list(saving_listeners or ())
        self._delay_secs = eval_delay_secs
        self._frequency = 1 if min_eval_frequency is None else min_eval_frequency
        if isinstance(export_strategies, _estimator().Exporter):
            export_strategies = [export_strategies]
        self._exports = list(export_strategies or ())

    def extend_train_hooks(self, additional_hooks: Any) -> None:
        """Add hooks to the training."""
        self._train_hooks.extend(additional_hooks)

    def train(self, delay_secs: float | None = None) -> Any:
        """Train for `train_steps`; in a cluster, in this process's role."""
        if _is_distributed(self.estimator.config):
            return self._train_and_evaluate()
        time.sleep(delay_secs or 0)
        return self.estimator.train(
            self._train_input_fn,
            hooks=self._train_hooks,
            max_steps=self.train_steps,
            saving_listeners=self._listeners,
        )

    def evaluate(self, delay_secs: float | None = None, name: str | None = None) -> Any:
        """Evaluate the newest checkpoint."""
        time.sleep(self._delay_secs if delay_secs is None else delay_secs)
        return self._evaluate(name or "one_pass")

    def _evaluate(self, name: str | None = None) -> Any:
        return self.estimator.evaluate(
            self._eval_input_fn, self.eval_steps, self._eval_hooks, name=name
        )

    def train_and_evaluate(self) -> Any:
        """Train and evaluate: the last metrics, and what the exports returned."""
        if self._frequency or _is_distributed(self.estimator.config):
            return self._train_and_evaluate()
        self.train(delay_secs=0)
        metrics, paths = self._evaluate(), []
        newest = self.estimator.latest_checkpoint()
        for exporter in self._exports:
            folder = os.path.join(self.estimator.model_dir, "export", exporter.name)
            # By these names, as Estimator's own training calls it.
            paths.append(
                exporter.export(
                    estimator=self.estimator,
                    export_path=folder,
                    checkpoint_path=newest,
                    eval_result=metrics,
                    is_the_final_export=True,
                )
            )
        return metrics, paths

    def _train_and_evaluate(self) -> Any:
        """Run the experiment as today's `train_and_evaluate` does."""
        estimator = _estimator()
        return train_and_evaluate(
            self.estimator,
            estimator.TrainSpec(
                self._train_input_fn,
                self.train_steps,
                self._train_hooks,
                self._listeners,
            ),
            estimator.EvalSpec(
                self._eval_input_fn,
                self.eval_steps,
                hooks=self._eval_hooks,
                exporters=self._exports,
                start_delay_secs=0,
                throttle_secs=0,
            ),
        )


def run(
    experiment_fn: Callable[..., Any],
    output_dir: str | None = None,
    schedule: str | None = None,
    run_config: Any = None,
    hparams: Any = None,
) -> Any:
    """`tf.contrib.learn.learn_runner.run`: makes an experiment and runs it."""
    if (output_dir is None) == (run_config is None):
        both = "Cannot provide both" if output_dir is not None else "Must set one of"
        raise ValueError(f"{both} `output_dir` and `run_config`")
    if run_config is None:
        experiment = experiment_fn(output_dir=output_dir)
    else:
        experiment = experiment_fn(run_config, hparams)
    task = getattr(experiment, schedule or "train_and_evaluate", None)
    if not callable(task) or (schedule or "").startswith("_"):
        names = [n for n in dir(Experiment) if not n.startswith("_")]
        raise ValueError(f"Schedule {schedule!r} is not one of {', '.join(names)}")
    return task()


def make_export_strategy(
    serving_input_fn: object,
    default_output_alternative_key: str | None = None,
    assets_extra: object = None,
    as_text: bool = False,
    exports_to_keep: int | None = 5,
    strip_default_attrs: object = None,
) -> Any:
    """`tf.contrib.learn.make_export_strategy`: the newest SavedModels are kept."""
    return _estimator().LatestExporter(
        "Servo", serving_input_fn, assets_extra, as_text, exports_to_keep
    )


def replace_monitors_with_hooks(monitors_or_hooks: Any, estimator: Any) -> list[Any]:
    """`tf.contrib.learn.monitors.replace_monitors_with_hooks`, where all are hooks.

    Monitors were removed: a class that is one raises where it is used.
    """
    return list(monitors_or_hooks or ())


def _is_distributed(config: Any) -> bool:
    cluster = config.cluster_spec.as_dict() if config.cluster_spec else {}
    return sum(map(len, cluster.values())) > 1
