"""`tf.contrib.opt`: the optimizers of old language models and of object detection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.session_graph import saved
from hookbridge.ground.protocols import Variable

v1: Any = tf.compat.v1


class LazyAdamOptimizer(v1.train.AdamOptimizer):  # type: ignore[misc]
    """Adam that leaves rows of a table alone, with their moments, without a gradient.

    The rows that have one are updated as Adam updates them.
    """

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._rows(grad.values, var, grad.indices)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        return self._rows(grad, var, indices)

    def _rows(self, gradient: Any, variable: Variable, indices: Any) -> Any:
        """Update some rows: their slots and values change, and no others do."""

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


class MovingAverageOptimizer(v1.train.Optimizer):  # type: ignore[misc]
    """Applies another optimizer, and averages the variables that it trains.

    `swapping_saver` saves the averages under the names of the variables.
    """

    def __init__(
        self,
        opt: Any,
        average_decay: float = 0.9999,
        num_updates: object = None,
        sequential_update: bool = True,
    ) -> None:
        self._optimizer = opt
        self._ema = v1.train.ExponentialMovingAverage(average_decay, num_updates)
        self._sequential_update = sequential_update
        # A variable's name -> its average's, and back; None before `apply_gradients`.
        self._swapped: dict[str, str] | None = None

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """See `Optimizer.compute_gradients`, of the other optimizer."""
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        """See `Optimizer.apply_gradients`; then the averages follow."""
        pairs = list(grads_and_vars)
        train = self._optimizer.apply_gradients(
            pairs, global_step=global_step, name=name
        )
        trained = [variable for gradient, variable in pairs if gradient is not None]
        after = [train] if self._sequential_update else []
        with tf.control_dependencies(after):
            follow = self._ema.apply(trained)
        averages = {v.op.name: self._ema.average(v).op.name for v in trained}
        self._swapped = averages | {v: k for k, v in averages.items()}
        return tf.group(train, follow, name="train_with_avg")

    def swapping_saver(
        self, var_list: Any = None, name: str = "swapping_saver", **kwargs: Any
    ) -> Any:
        """Return a `Saver` whose checkpoints have the averages as weights.

        Args:
          var_list: the variables, or `{name: variable or parts}`, as for `Saver`; all
            of the graph if None.
          name: the name of the saver.
          **kwargs: further arguments of `Saver`.

        Raises:
          RuntimeError: nothing was minimized yet.
          errors.InvalidArgumentError: an average or a variable is not in `var_list`.
        """
        if self._swapped is None:
            raise RuntimeError(
                "Must call apply_gradients or minimize before creating the "
                "swapping_saver"
            )
        to_save = v1.global_variables() if var_list is None else var_list
        entries = to_save if isinstance(to_save, Mapping) else _entries(to_save)
        by_name = {v.op.name: v for parts in entries.values() for v in _parts(parts)}

        def swapped(variable: Variable) -> Any:
            partner = (self._swapped or {}).get(variable.op.name)
            if partner is not None and partner not in by_name:
                raise errors.InvalidArgumentError(
                    f"Variable to swap {partner} is not part of variables to save. "
                    f"Give `swapping_saver` `{variable.op.name}` and its average "
                    "together, or no `var_list`."
                )
            return variable if partner is None else by_name[partner]

        swapped_entries = {
            key: list(map(swapped, parts)) if _is_list(parts) else swapped(parts)
            for key, parts in entries.items()
        }
        return v1.train.Saver(swapped_entries, name=name, **kwargs)


def _is_list(parts: object) -> bool:
    """Return whether it is a list of parts, or a partitioned variable."""
    return isinstance(parts, Iterable) and not isinstance(parts, tf.Variable)


def _parts(parts: Any) -> list[Any]:
    return list(parts) if _is_list(parts) else [parts]


def _entries(variables: Iterable[Any]) -> dict[str, Any]:
    """Return `{name in the checkpoint: variable, or the parts of one}`."""
    entries: dict[str, Any] = {}
    for entry, variable in saved.entries_of(variables).items():
        if entry.slice:
            entries.setdefault(entry.name, []).append(variable)
        else:
            entries[entry.name] = variable
    return entries
