"""`SyncReplicasOptimizer` behind control dependencies that are the workers' own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def is_synchronous(optimizer: Any) -> bool:
    """Whether it is TensorFlow's optimizer over several workers."""
    import tensorflow as tf

    return isinstance(optimizer, tf.compat.v1.train.SyncReplicasOptimizer)


def apply_apart(apply: Callable[[], Any]) -> Any:
    """Applies gradients through a `SyncReplicasOptimizer`.

    Its `apply_gradients` makes two things: the worker's step, and the update that a
    thread of the chief runs. Control dependencies around the call would reach both:
    the chief's thread would run the forward pass and take batches of its own. Here
    they reach the worker's step only.

    Args:
      apply: calls `apply_gradients`.

    Returns:
      The worker's step.
    """
    import tensorflow as tf

    with tf.control_dependencies(None):
        step = apply()
    return tf.group(step, name="sync_step")


class SyncReplicas:
    """Makes an optimizer that updates once for several workers' gradients.

    Args:
      make: makes the optimizer that updates, from the learning rate.
      replicas_to_aggregate: gradients that make an update.
      num_workers: workers of the cluster.

    Attributes:
      optimizer: the `SyncReplicasOptimizer`, once it was made.
    """

    def __init__(
        self, make: Callable[[Any], Any], replicas_to_aggregate: int, num_workers: int
    ) -> None:
        self._make = make
        self._sizes = (replicas_to_aggregate, num_workers)
        self.optimizer: Any = None

    def __call__(self, learning_rate: Any) -> SyncReplicas:
        """Makes the optimizer; returns what builds with it."""
        import tensorflow as tf

        replicas, workers = self._sizes
        self.optimizer = tf.compat.v1.train.SyncReplicasOptimizer(
            self._make(learning_rate), replicas, total_num_replicas=workers
        )
        return self

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """As the optimizer's."""
        return self.optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """As the optimizer's, apart from the caller's control dependencies."""
        return apply_apart(lambda: self.optimizer.apply_gradients(*args, **kwargs))
