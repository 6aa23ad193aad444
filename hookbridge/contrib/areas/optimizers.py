"""`tf.contrib.opt.LazyAdamOptimizer`, the optimizer of many old language models."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

v1: Any = tf.compat.v1


class LazyAdamOptimizer(v1.train.AdamOptimizer):  # type: ignore[misc]
    """Adam that leaves rows of a table alone, with their moments, without a gradient.

    The rows that have one are updated as Adam updates them.
    """

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._rows(grad.values, var, grad.indices)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        return self._rows(grad, var, indices)

    def _rows(self, gradient: Any, variable: Any, indices: Any) -> Any:
        """The update of some rows: their slots and values change, and no others do."""

        def same(value: Any) -> Any:
            return tf.cast(value, gradient.dtype)

        power1, power2 = map(same, self._get_beta_accumulators())
        beta1, beta2 = same(self._beta1_t), same(self._beta2_t)
        mean, square = self.get_slot(variable, "m"), self.get_slot(variable, "v")
        means = beta1 * tf.gather(mean, indices) + (1 - beta1) * gradient
        squares = beta2 * tf.gather(square, indices) + (1 - beta2) * gradient**2
        rate = same(self._lr_t) * tf.sqrt(1 - power2) / (1 - power1)
        change = rate * means / (tf.sqrt(squares) + same(self._epsilon_t))
        return tf.group(
            v1.scatter_update(mean, indices, means),
            v1.scatter_update(square, indices, squares),
            v1.scatter_sub(variable, indices, change),
        )
