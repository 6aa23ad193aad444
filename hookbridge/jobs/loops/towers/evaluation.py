"""Evaluates a network inside a session, on its live variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.ground.protocols import Session
from hookbridge.ground.validation import ValidationReport
from hookbridge.jobs.loops.towers.build import VARIABLE_DEVICE, own_collections
from hookbridge.jobs.loops.towers.inputs import as_pair, num_batches


class Evaluation:
    """The evaluation part of a graph: one replica that shares the variables.

    Make it inside the graph, before the session; run it any number of times. It
    runs on one device, so that its batches may have any size. It implements
    `hb.Validation`. If the dataset does not know how many batches it has, there is one
    extra `on_batch_begin` at the end of the data, as in Keras.
    """

    def __init__(
        self,
        means: Callable[[Any, Any], Mapping[str, Any]],
        input_fn: Callable[[], Any],
    ) -> None:
        """Build `means(features, labels)`, of the examples, under `evaluation/`."""
        batches = num_batches(input_fn)
        trained = tf.compat.v1.global_variables()
        with (
            own_collections(),
            tf.compat.v1.variable_scope(
                tf.compat.v1.get_variable_scope(),
                reuse=tf.compat.v1.AUTO_REUSE,
                auxiliary_name_scope=False,
            ),
            tf.compat.v1.name_scope("evaluation"),
            tf.device(VARIABLE_DEVICE),
        ):
            iterator = tf.compat.v1.data.make_initializable_iterator(input_fn())
            features, labels = as_pair(iterator.get_next())
            values = dict(means(features, labels))
            size = tf.shape(tf.nest.flatten(features)[0])[0]
        new = [v.op.name for v in tf.compat.v1.global_variables()[len(trained) :]]
        if trained and new:
            raise errors.InvalidArgumentError(
                f"The validation made the variables {new}, which nothing trains; "
                "expected the variables of the training. Make each with "
                "`tf.compat.v1.get_variable`, which shares them by name."
            )
        if batches == tf.data.INFINITE_CARDINALITY:
            raise errors.InvalidArgumentError(
                "The validation input never ends; expected one pass over the data. "
                "Leave out `.repeat()` or add `.take(number_of_batches)`."
            )
        is_unknown = batches == tf.data.UNKNOWN_CARDINALITY
        self.num_batches: int | None = None if is_unknown else batches
        self.metric_names: tuple[str, ...] = tuple(values)
        self._initializer = iterator.initializer
        self._fetches = (values, size)

    def run(
        self, session: Session, report: ValidationReport | None = None
    ) -> dict[str, float]:
        """Return the means over the examples of one pass over the data."""
        session.run(self._initializer)
        sums = dict.fromkeys(self.metric_names, 0.0)
        means: dict[str, float] = {}
        count = batch = 0
        while batch != self.num_batches:
            if report is not None:
                report.batch_begin(batch)
            try:
                values, size = session.run(self._fetches)
            except tf.errors.OutOfRangeError:
                break
            count += int(size)
            for name, value in values.items():
                sums[name] += float(value) * int(size)
            means = {name: total / count for name, total in sums.items()}
            if report is not None:
                report.batch_end(batch, means)
            batch += 1
        if not count:
            raise errors.InvalidArgumentError(
                "The validation input gave no batch; expected at least one. A "
                "dataset shorter than one batch is empty with `drop_remainder=True`."
            )
        return means
