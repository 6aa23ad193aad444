"""Takes tensors out of a Keras model's step while Keras traces it.

The model's `train_step` (`test_step`, `predict_step`) is replaced while Keras traces
its function, by one that calls it and adds tensors to its result, under one key that is
taken off before Keras sees the result. This works through all that Keras puts around a
step: replicas, inner functions, XLA, loops over several steps.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.fit_loop import first_replica
from hookbridge.adapters.fit_loop.batches import batch_tensors
from hookbridge.adapters.fit_loop.spies import SCHEDULED_RATE, Spies
from hookbridge.adapters.fit_loop.step_source import StepSource, named_outputs
from hookbridge.adapters.hooked_loop.modes import TRAIN
from hookbridge.adapters.keras_model.optimizers import (
    learning_rate_variable,
    learning_rates,
    optimizer_of,
)
from hookbridge.adapters.keras_model.structure import trains_in_several_processes
from hookbridge.adapters.keras_model.variables import components
from hookbridge.adapters.live_session.step_names import OUTPUTS, StepNames
from hookbridge.ground import patching

_TAPPED = "hookbridge_tapped"
_OUTPUTS = "hookbridge_outputs"


class StepTap:
    """The replacement of one model's step method.

    Args:
      source: the step that it calls.
      keys: the keys of the tensors that the step returns too.
      names: the catalogue, which the first trace fills.
      names_to_try: names that hooks are likely to ask for; the first trace finds
        their keys.
      counter: a variable that each call raises by one.
      optimizer: what the step trains with; None for what the model has when it is
        traced.
    """

    def __init__(
        self,
        source: StepSource,
        keys: Sequence[str],
        names: StepNames,
        names_to_try: Iterable[str] = (),
        counter: tf.Variable | None = None,
        optimizer: object = None,
    ) -> None:
        self._source = source
        self._keys = tuple(keys)
        self._names = names
        self._names_to_try = tuple(names_to_try)
        self._counter = counter
        self._optimizer = optimizer
        self.found_keys: tuple[str, ...] = ()
        self._spies = Spies(source.model, self._keys)
        self._first_replica_tensors: dict[str, Any] = {}
        self._is_tracing = False

    def feed(self, feeds: Mapping[str, Any]) -> None:
        """Replace step tensors by fed tensors in the next trace."""
        self._spies.feeds = feeds

    @contextlib.contextmanager
    def tracing(self) -> Iterator[None]:
        """Put the tap on the model: in this context Keras may trace the step."""
        with (
            self._with_optimizer(),
            self._source.replacing_method(self),
            self._spies.installed(self._names.is_eager),
            first_replica.keep_taps_out_of_reduction(self._source.model, split, join),
            patching.temporarily(self, _is_tracing=True),
        ):
            yield

    def _with_optimizer(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which the model has the optimizer of the other traces.

        A callback may have set another one without asking for a new step.
        """
        model, optimizer = self._source.model, self._optimizer
        is_set = optimizer is None or self._names.is_eager
        if is_set or optimizer_of(model) is optimizer:
            return contextlib.nullcontext()
        return patching.patched(model, optimizer=optimizer)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        with self._spies.watching() as noted:
            outputs = self._source.method(*args, **kwargs)
        tensors, loop_keys = self._source.tensors_of(outputs, noted)
        context = tf.distribute.get_replica_context()
        if context is not None and context.num_replicas_in_sync > 1:
            loss = noted.get("loss")
            is_noted = loss is not None and tensors.get("loss") is loss
            if is_noted and "loss" in self._keys:
                tensors["loss"] = self._loss_of_batch(loss, context)
            tensors.update(self._metrics_of_replicas(loop_keys, context))
        else:
            tensors.update(batch_tensors(self._source.method, args))
        replica = context.replica_id_in_sync_group if context else 0
        if first_replica.is_first(self._source.model, replica):
            self._take_first_replica(tensors, loop_keys)
        if not (self._is_tracing and self._returns_tensors):
            return outputs
        # The same tensor objects from every replica: Keras then passes them
        # through instead of summing them over replicas.
        return join(outputs, self._first_replica_tensors)

    @property
    def _returns_tensors(self) -> bool:
        """Return whether the step may return more than Keras asks of it."""
        return bool(self._keys or self._names_to_try)

    def _note_rates(self) -> None:
        """Note which learning rates the step reads."""
        if self._source.mode is not TRAIN:
            return
        model, names = self._source.model, self._names
        if names.rates_read is None:
            names.rates_read = set()
        read = names.rates_read
        if self._spies.has_updated:
            read.add(id(learning_rate_variable(optimizer_of(model))))
        if not names.is_eager:
            # The function captures what it reads.
            captured = {id(t) for t, _ in tf.compat.v1.get_default_graph().captures}
            for rate in learning_rates(model):
                if any(id(part.handle) in captured for part in components(rate)):
                    read.add(id(rate))

    def _loss_of_batch(
        self, loss: tf.Tensor, context: tf.distribute.ReplicaContext
    ) -> tf.Tensor:
        """Return the loss of the whole batch, computed from one replica's loss."""
        # Each replica's loss is scaled by the number of replicas: their sum is the
        # loss of the whole batch.
        if trains_in_several_processes(self._source.model):
            # A sum would need all processes, and some may not fetch the loss.
            return loss * tf.cast(context.num_replicas_in_sync, loss.dtype)
        return context.all_reduce("SUM", loss)

    def _metrics_of_replicas(
        self, loop_keys: Mapping[str, str], context: tf.distribute.ReplicaContext
    ) -> dict[str, tf.Tensor]:
        """Return the metrics that are returned, over all replicas, as in Keras's logs.

        A metric of Keras 2 does so itself; in Keras 3 a replica reads its own sums.
        """
        model = self._source.model
        read = getattr(model, "get_metrics_result", None)
        if read is None or not self._returns_tensors:
            return {}
        if trains_in_several_processes(model):
            return {}  # a sum would need all, and some may not fetch the metric
        results = context.merge_call(lambda _: read())
        return {k: v for k, v in results.items() if k in loop_keys and k != "loss"}

    def _take_first_replica(
        self, tensors: dict[str, Any], loop_keys: dict[str, str]
    ) -> None:
        """Keep the tensors that are returned, and feed those that are fed."""
        if self._counter is not None:
            self._counter.assign_add(1)
        self._catalogue(tensors, loop_keys)
        self._note_rates()
        folders = tuple(key for key in self._keys if key.endswith("/"))
        all_below = (key for key in sorted(tensors) if key.startswith(folders))
        self.found_keys = (*self._find_keys(), *all_below)
        keys = (*self._keys, *self.found_keys) if self._is_tracing else ()
        self._first_replica_tensors = {
            key: self._value(key, tensors)
            for key in keys
            if key in tensors or ":" in key  # a step may have no loss
        }
        for key, value in self._spies.feeds.items():
            if key != SCHEDULED_RATE:
                self._feed(key, self._find(key, tensors), value)

    def _find_keys(self) -> tuple[str, ...]:
        if self._names.is_eager:
            return ()
        items = map(self._names.find, self._names_to_try)
        keys = {item.key for item in items if item is not None}
        # Keras joins the outputs of all replicas, and returns them anyway.
        return tuple(sorted(key for key in keys if not key.startswith(OUTPUTS)))

    def _value(self, key: str, tensors: Mapping[str, Any]) -> Any:
        """Return what a hook gets: a dense gradient without the loss's scale."""
        tensor = self._find(key, tensors)
        if isinstance(tensor, tf.IndexedSlices):
            tensor = tf.convert_to_tensor(tensor)
        scale = self._spies.scale_of(key)
        return tensor if scale is None else tensor / tf.cast(scale, tensor.dtype)

    def _feed(self, key: str, tensor: tf.Tensor, value: tf.Tensor) -> None:
        """Give the consumers of `tensor` the fed value instead."""
        value = tf.ensure_shape(tf.cast(value, tensor.dtype), tensor.shape)
        if (scale := self._spies.scale_of(key)) is not None:
            value *= tf.cast(scale, value.dtype)
        for op in tensor.consumers():
            for index, source in enumerate(op.inputs):
                if source is tensor:
                    op._update_input(index, value)

    def _catalogue(self, tensors: Mapping[str, Any], loop_keys: dict[str, str]) -> None:
        """Fill the catalogue of the step's tensors from its first trace."""
        names = self._names
        if names.is_filled or names.is_eager:
            return
        names.loop_keys.update(loop_keys)
        for key, tensor in tensors.items():
            shape = tensor.shape
            if key.startswith(OUTPUTS) and shape.rank:
                # Keras joins the batches of all replicas.
                shape = tf.TensorShape([None, *shape[1:]])
            names.add_short(key, tensor.dtype, shape)
            if isinstance(tensor, tf.IndexedSlices):
                names.of_rows.add(key)
        names.add_traced(
            t
            for op in tf.compat.v1.get_default_graph().get_operations()
            if not op.name.startswith("replica_")
            for t in op.outputs
        )

    def _find(self, key: str, tensors: Mapping[str, Any]) -> Any:
        """Return the tensor of a key in the function that is traced now."""
        if key in tensors:
            return tensors[key]
        graph = tf.compat.v1.get_default_graph()
        try:
            return graph.get_tensor_by_name(key)
        except KeyError:
            traced = (t for op in graph.get_operations() for t in op.outputs)
            again = self._names.find_again(key, traced)
            if again is None:
                raise
            return graph.get_tensor_by_name(again)


def values_of(
    tapped: Mapping[str, str],
    outputs: object,
    tensors: Mapping[str, Any],
    names: Sequence[str],
) -> dict[str, Any]:
    """Return `{placeholder: value}` of the tapped tensors of one step."""
    values = dict(tensors)
    if any(key not in values for key in tapped.values()):
        for name, value in named_outputs(outputs, names).items():
            values[f"{OUTPUTS}{name}"] = value
            values.setdefault(name, value)
    try:
        return {name: values[key] for name, key in tapped.items()}
    except KeyError as e:
        raise errors.LiveSessionError(
            f"A hook fetches `{e.args[0]}`, which cannot be read from outside: the "
            "step runs eagerly, and a `tf.function` in it keeps its tensors to "
            "itself. Return the value from the step, or make the step itself a "
            "`tf.function`.",
            see="own loops",
        ) from e


def split(result: object) -> tuple[Any, dict[str, Any]]:
    """Split a step's result: `(what Keras gets, {key: tapped tensor})`."""
    if isinstance(result, Mapping) and _TAPPED in result:
        return result[_OUTPUTS], dict(result[_TAPPED])
    return result, {}


def join(outputs: object, tapped: Mapping[str, Any]) -> Any:
    """Return what `split` takes apart."""
    return {_OUTPUTS: outputs, _TAPPED: dict(tapped)} if tapped else outputs
