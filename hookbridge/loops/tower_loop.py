"""The training loop over `MonitoredTrainingSession`, with in-graph towers."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.convert import as_hooks
from hookbridge.adapters.session_graph.variables import write
from hookbridge.adapters.session_loop.last_step import LastEpochHook
from hookbridge.arguments import instance, positive, shown, with_arguments, writable
from hookbridge.loops.steps import Steps, run_steps
from hookbridge.loops.towers import devices as devices_lib
from hookbridge.loops.towers.evaluation import Evaluation
from hookbridge.loops.towers.graph import TowerGraph, build_training
from hookbridge.loops.towers.inputs import InputFn, check_first_batch
from hookbridge.loops.towers.spec import FinalValuesHook, ModelFn, TrainingResult

if TYPE_CHECKING:
    from hookbridge.loops.clusters.session_cluster import SessionCluster


class TowerLoop:
    """Synchronous data-parallel training in graph mode, in one process or several.

    Every step splits one batch `[N, ...]` among the towers, averages their
    gradients and updates the shared variables once, as `tf.distribute.MirroredStrategy`
    does. With `replicas_to_aggregate` several workers make one update together, by the
    backup-worker scheme of `tf.compat.v1.train.SyncReplicasOptimizer` (Chen et al.,
    "Revisiting Distributed Synchronous SGD", arXiv:1604.00981).

    Hooks fetch and feed by the same names as in `Model.fit`: `"loss:0"` and
    `"<metric>:0"` (means over the whole batch), `"learning_rate:0"`, `"global_step:0"`,
    and ops such as `"hidden/Relu:0"`. These are the ops of the first tower, which see
    its N / num_towers examples; the other towers' ops are under `tower_1/` and so on.
    """

    def __init__(
        self,
        model_fn: ModelFn,
        *,
        optimizer: Callable[[Any], Any],
        learning_rate: float | Callable[[Any], Any],
        num_towers: int = 1,
        devices: Sequence[str] | None = None,
        seed: int | None = None,
        session_config: Any = None,
        cluster: SessionCluster | None = None,
        replicas_to_aggregate: int | None = None,
    ) -> None:
        """Configures the loop; nothing is built before `train`.

        Args:
          model_fn: called as `model_fn(features, labels, mode)` with the tensors
            `[N / num_towers, ...]` of one tower and the mode `"train"` or `"eval"`;
            returns a `TowerSpec`. It is called once for each tower and once for a
            validation, on the thread that calls `train` or `evaluate`.
          optimizer: called with the learning-rate tensor `[]`, once in each `train`, on
            the thread that calls it; returns a `tf.compat.v1.train.Optimizer`. It can
            be the class itself if the learning rate is its first argument.
          learning_rate: initial value, which callbacks can set, or a function of the
            global step, an integer tensor `[]`. The function is called once in each
            `train`, on the thread that calls it.
          num_towers: number of towers.
          devices: one device for each tower; None takes the GPUs if there are
            any, or else logical CPU devices, which the session makes.
          seed: graph-level random seed.
          session_config: `tf.compat.v1.ConfigProto` for the sessions.
          cluster: this process's task; None trains in one process.
          replicas_to_aggregate: the number of workers' gradients that make one update,
            through `tf.compat.v1.train.SyncReplicasOptimizer`; None lets each worker
            update by itself. In a cluster only.

        Raises:
          errors.InvalidArgumentError: an argument has a bad value.
        """
        self._replicas = positive("replicas_to_aggregate", replicas_to_aggregate)
        if replicas_to_aggregate is not None and cluster is None:
            raise errors.InvalidArgumentError(
                f"Received replicas_to_aggregate={replicas_to_aggregate} without "
                "cluster; expected both. Pass `cluster=hb.loops.SessionCluster()`."
            )
        for name, function in (("model_fn", model_fn), ("optimizer", optimizer)):
            if not callable(function):
                raise errors.InvalidArgumentError(
                    f"Received {name}={function!r}; expected a function."
                )
        with_arguments("model_fn", model_fn, "features", "labels", "mode")
        if seed is not None:
            instance("seed", seed, int, "an integer, or None")
        if cluster is not None and not hasattr(cluster, "use_config"):
            raise errors.InvalidArgumentError(
                f"Received cluster={shown(cluster)}; expected a "
                "`hb.loops.SessionCluster`, or None to train in one process."
            )
        if not callable(learning_rate) and not (
            isinstance(learning_rate, numbers.Real) and 0 < learning_rate < math.inf
        ):
            raise errors.InvalidArgumentError(
                f"Received learning_rate={learning_rate!r}; expected a number above 0 "
                "or a function of the global step."
            )
        self.devices = devices_lib.tower_devices(num_towers, devices)
        self._model_fn = model_fn
        self._optimizer = optimizer
        self._learning_rate = learning_rate
        self._seed = seed
        self._config = devices_lib.session_config(self.devices, base=session_config)
        self._cluster = cluster
        if cluster is not None:
            # In a cluster, the server decides which devices a session has.
            cluster.use_config(self._config)

    def train(
        self,
        input_fn: InputFn,
        *,
        guests: Any = (),
        steps_per_epoch: int | None = None,
        epochs: int | None = None,
        max_steps: int | None = None,
        validation_fn: InputFn | None = None,
        model_dir: str | os.PathLike[str] | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> TrainingResult:
        """Trains until the data, `epochs`, `max_steps` or a guest ends it.

        Args:
          input_fn: called once inside the loop's graph, on the thread that calls
            `train`; returns a `tf.data.Dataset` of `(features, labels)` batches,
            tensors `[N, ...]`. If N is not static, several towers read one more
            batch, before the training.
          guests: any mix of hooks and callbacks, in the order in which they see
            events.
          steps_per_epoch: steps that make an epoch, for callbacks.
          epochs: ends the run after this number of epochs, from global step 0.
          max_steps: ends the run at this global step.
          validation_fn: as `input_fn`, called once, on the same thread; returns a
            dataset that ends. It is evaluated on the live variables at the end of
            each epoch for the `val_*` logs.
          model_dir: a checkpoint found here is restored before the first step. Only
            guests write here; in a cluster the loop also writes a mark when the job is
            over (see `checkpoints_until_stop`). None restores nothing.
          params: further entries of `callback.params`.

        Returns:
          The global step and the variables at the end.

        Raises:
          errors.InvalidArgumentError: an argument has a bad value, the batch does not
            divide among the towers, or there was none.
          errors.UnwritableError: `model_dir` cannot be written.
          errors.HookBridgeError: a guest was refused; see `as_hooks`.
        """
        last_step = _resolve_last_step(steps_per_epoch, epochs, max_steps)
        if model_dir is not None:
            model_dir = writable(model_dir, name="model_dir")
        final = FinalValuesHook()

        def build(batch: Any) -> Steps:
            graph, sync_hooks = self._build(batch)
            hooks = as_hooks(
                guests,
                steps_per_epoch=steps_per_epoch,
                epochs=epochs,
                logs={"loss": graph.loss, **graph.metrics},
                validation=validation_fn and Evaluation(self._model_fn, validation_fn),
                learning_rate=graph.learning_rate,
                params=params,
            )
            last = [] if last_step is None else [LastEpochHook(last_step)]
            return Steps(graph.train_op, [*sync_hooks, *hooks, *last, final])

        run_steps(
            build,
            input_fn,
            cluster=self._cluster,
            config=self._config,
            seed=self._seed,
            checkpoint_dir=model_dir,
            # Only guests write files.
            save_checkpoint_secs=None,
            save_checkpoint_steps=None,
            save_summaries_steps=None,
            save_summaries_secs=None,
        )
        if final.global_step is None:
            # Every clean end calls `end`, except when another task stopped the job.
            assert self._cluster is not None
            return TrainingResult(0, {})
        was_done = last_step is not None and final.global_step >= last_step
        if not (final.steps or was_done or self._cluster is not None):
            raise errors.InvalidArgumentError(
                "No step was made: the dataset of `input_fn` has no batch; expected "
                "one at least."
            )
        return TrainingResult(final.global_step, final.variables)

    def evaluate(
        self, input_fn: InputFn, *, variables: Mapping[str, Any]
    ) -> dict[str, float]:
        """Evaluates variables on one pass over a dataset.

        Args:
          input_fn: as in `train`, a dataset that ends.
          variables: `{variable name: array}`, as `train` returns them.

        Returns:
          `{"loss": ..., metric: ...}`, means over the examples.

        Raises:
          errors.InvalidArgumentError: a variable of the model is missing, or the
            dataset is empty or never ends.
        """
        with tf.Graph().as_default():
            evaluation = Evaluation(self._model_fn, input_fn)
            wanted = tf.compat.v1.global_variables()
            missing = [v.op.name for v in wanted if v.op.name not in variables]
            if missing:
                raise errors.InvalidArgumentError(
                    f"Received variables {sorted(variables)}; expected also "
                    f"{missing}, which the model has. Pass `train(...).variables`."
                )
            with tf.compat.v1.Session(config=self._config) as session:
                session.run(tf.compat.v1.local_variables_initializer())
                session.run(tf.compat.v1.tables_initializer())
                write(session, [(v, variables[v.op.name]) for v in wanted])
                return evaluation.run(session)

    def _build(self, batch: Any) -> tuple[TowerGraph, list[Any]]:
        """The graph, and the hooks that `SyncReplicasOptimizer` needs on a worker."""
        check_first_batch(batch, len(self.devices))
        cluster, replicas = self._cluster, self._replicas

        def make_optimizer(learning_rate: Any) -> Any:
            optimizer = self._optimizer(learning_rate)
            if cluster is None or replicas is None:
                return optimizer
            return tf.compat.v1.train.SyncReplicasOptimizer(
                optimizer, replicas, total_num_replicas=cluster.num_workers
            )

        graph = build_training(
            self._model_fn,
            batch,
            optimizer=make_optimizer,
            learning_rate=self._learning_rate,
            devices=self.devices,
        )
        if cluster is None or replicas is None:
            return graph, []
        return graph, [graph.optimizer.make_session_run_hook(cluster.is_chief)]


def _resolve_last_step(
    steps_per_epoch: int | None, epochs: int | None, max_steps: int | None
) -> int | None:
    """The global step that ends a run; None if data or guests end it."""
    positive("steps_per_epoch", steps_per_epoch)
    positive("epochs", epochs)
    positive("max_steps", max_steps)
    if epochs is None:
        return max_steps
    if steps_per_epoch is None:
        raise errors.InvalidArgumentError(
            f"Received epochs={epochs} without steps_per_epoch; expected both, since "
            "a session counts steps. Give steps_per_epoch, or max_steps instead."
        )
    by_epochs = steps_per_epoch * epochs
    return by_epochs if max_steps is None else min(by_epochs, max_steps)
