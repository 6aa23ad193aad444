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
from hookbridge.adapters.fit_loop import own_replica
from hookbridge.adapters.fit_loop.batches import batch_tensors
from hookbridge.adapters.fit_loop.eager_step import OUTPUT, output_names
from hookbridge.adapters.fit_loop.spies import SCHEDULED_RATE, Spies
from hookbridge.adapters.hooked_loop.modes import PREDICT, TRAIN, Mode
from hookbridge.adapters.live_session.step_names import OUTPUTS, StepNames
from hookbridge.ground import patching

_TAPPED = "hookbridge_tapped"
_OUTPUTS = "hookbridge_outputs"


class StepTap:
    """The replacement of one model's step method."""

    def __init__(
        self,
        model: Any,
        mode: Mode,
        step: Any,
        keys: Sequence[str],
        names: StepNames,
        hints: Iterable[str] = (),
    ) -> None:
        self._model = self.owner = model
        self._mode = mode
        self._step = step
        self._keys = tuple(keys)
        self._names = names
        self._hints = tuple(hints)
        self.hinted: tuple[str, ...] = ()
        self._spies = Spies(model, self._keys)
        self._first_replica: dict[str, Any] = {}
        self._is_tracing = False
        self.counter: Any = None

    def feed(self, feeds: Mapping[str, Any]) -> None:
        """Replaces step tensors by fed tensors in the next trace."""
        self._spies.feeds = feeds

    @contextlib.contextmanager
    def tracing(self) -> Iterator[None]:
        """Puts the tap on the model: in this context Keras may trace the step."""
        with (
            patching.patched(self.owner, **{self._mode.step: self}),
            self._spies.installed(self._names.is_eager),
            own_replica.keep_taps_out_of_reduction(self._model, split, joined),
        ):
            self._is_tracing = True
            try:
                yield
            finally:
                self._is_tracing = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        context = tf.distribute.get_replica_context()
        replica = context.replica_id_in_sync_group if context else 0
        replicas = context.num_replicas_in_sync if context else 1
        with self._spies.watching() as noted:
            outputs = self._step(*args, **kwargs)
        short: dict[str, Any] = {}
        named = outputs
        if self.owner is not self._model:  # a step of the user's own
            named = self.owner.named(outputs)
            noted = {k: t for k, t in noted.items() if _is_of_this_function(t)}
        if self._mode is PREDICT:
            outs = named_outputs(outputs, output_names(self._model))
            loop_keys = {name: f"{OUTPUTS}{name}" for name in outs}
            short.update({loop_keys[name]: tensor for name, tensor in outs.items()})
        else:
            if isinstance(named, Mapping):
                short.update({k: v for k, v in named.items() if tf.is_tensor(v) and k})
            loop_keys = {k: k for k in short}
            if "loss" in noted:
                loop_keys = {"loss": "loss", **loop_keys}
        short.update(noted)
        if self._mode is TRAIN and replicas == 1:
            short.update(batch_tensors(self._step, args))
        if "loss" in noted and replicas > 1 and "loss" in self._keys:
            # Each replica's loss is scaled by the number of replicas: their sum
            # is the loss of the whole batch.
            if own_replica.is_spread(self._model):
                # A sum would need all processes, and some may not fetch the loss.
                short["loss"] *= tf.cast(replicas, short["loss"].dtype)
            else:
                short["loss"] = context.all_reduce("SUM", short["loss"])
        if own_replica.is_first(self._model, replica):
            if self.counter is not None:
                self.counter.assign_add(1)
            self._catalogue(short, loop_keys)
            below = tuple(key for key in self._keys if key.endswith("/"))
            all_below = (key for key in sorted(short) if key.startswith(below))
            self.hinted = (*self._keys_of_hints(), *all_below)
            self._first_replica = {
                key: self._value(key, short)
                for key in ((*self._keys, *self.hinted) if self._is_tracing else ())
                if key in short or ":" in key  # a step may have no loss
            }
            for key, value in self._spies.feeds.items():
                if key != SCHEDULED_RATE:
                    self._feed(key, self._find(key, short), value)
        if not (self._keys or self._hints) or not self._is_tracing:
            return outputs
        # The same tensor objects from every replica: Keras then passes them
        # through instead of summing them over replicas.
        return joined(outputs, self._first_replica)

    def _keys_of_hints(self) -> tuple[str, ...]:
        if self._names.is_eager:
            return ()
        items = map(self._names.find, self._hints)
        keys = {item.key for item in items if item is not None}
        # Keras joins the outputs of all replicas, and returns them anyway.
        return tuple(sorted(key for key in keys if not key.startswith(OUTPUTS)))

    def _value(self, key: str, short: Mapping[str, Any]) -> Any:
        """What a hook gets: a gradient is dense and without the scale of the loss."""
        tensor = self._find(key, short)
        if isinstance(tensor, tf.IndexedSlices):
            tensor = tf.convert_to_tensor(tensor)
        scale = self._spies.scale_of(key)
        return tensor if scale is None else tensor / tf.cast(scale, tensor.dtype)

    def _feed(self, key: str, tensor: Any, value: Any) -> None:
        """Gives the consumers of `tensor` the fed value instead."""
        value = tf.ensure_shape(tf.cast(value, tensor.dtype), tensor.shape)
        if (scale := self._spies.scale_of(key)) is not None:
            value *= tf.cast(scale, value.dtype)
        for op in tensor.consumers():
            for index, source in enumerate(op.inputs):
                if source is tensor:
                    op._update_input(index, value)

    def _catalogue(self, short: Mapping[str, Any], loop_keys: dict[str, str]) -> None:
        names = self._names
        if names.is_filled or names.is_eager:
            return
        names.loop_keys.update(loop_keys)
        for key, tensor in short.items():
            shape = tensor.shape
            if key.startswith(OUTPUTS) and shape.rank:
                # Keras joins the batches of all replicas.
                shape = tf.TensorShape([None, *shape[1:]])
            names.add_short(key, tensor.dtype, shape)
            if isinstance(tensor, tf.IndexedSlices):
                names.of_rows.add(key)
        graph = tf.compat.v1.get_default_graph()
        names.add_traced(
            t
            for op in graph.get_operations()
            if not op.name.startswith("replica_")
            for t in op.outputs
        )

    def _find(self, key: str, short: Mapping[str, Any]) -> Any:
        if key in short:
            return short[key]
        graph = tf.compat.v1.get_default_graph()
        try:
            return graph.get_tensor_by_name(key)
        except KeyError:
            tensors = (t for op in graph.get_operations() for t in op.outputs)
            again = self._names.find_again(key, tensors)
            if again is None:
                raise
            return graph.get_tensor_by_name(again)


def values_of(
    tapped: Mapping[str, str],
    outputs: Any,
    tensors: Mapping[str, Any],
    names: Sequence[str],
) -> dict[str, Any]:
    """`{placeholder: value}` of the tapped tensors of one step."""
    values = dict(tensors)
    if any(key not in values for key in tapped.values()):
        for name, value in named_outputs(outputs, names).items():
            values[f"{OUTPUTS}{name}"] = value
            values.setdefault(name, value)
    try:
        return {name: values[key] for name, key in tapped.items()}
    except KeyError as e:
        raise errors.LiveSessionError(
            f"A hook fetches `{e.args[0]}`, which the step has computed where nobody "
            "sees it: it runs eagerly, and a `tf.function` in it keeps its tensors. "
            "Return the value from the step, or make the step itself a `tf.function`.",
            see="own loops",
        ) from e


def named_outputs(outputs: Any, names: Sequence[str]) -> dict[str, Any]:
    """What a step returns, as `{name: tensor}`."""
    if isinstance(outputs, Mapping):
        return {str(k): v for k, v in outputs.items() if tf.is_tensor(v) and k}
    leaves = [leaf for leaf in tf.nest.flatten(outputs) if tf.is_tensor(leaf)]
    if len(names) != len(leaves):
        names = [f"{OUTPUT}{i}" for i in range(1, len(leaves) + 1)]
    return dict(zip(names, leaves, strict=True))


def split(result: Any) -> tuple[Any, dict[str, Any]]:
    """A step's result in two parts: `(what Keras gets, {key: tapped tensor})`."""
    if isinstance(result, Mapping) and _TAPPED in result:
        return result[_OUTPUTS], dict(result[_TAPPED])
    return result, {}


def _is_of_this_function(tensor: Any) -> bool:
    """Whether the function that runs or is traced now can return a tensor."""
    tensor = tensor.values if isinstance(tensor, tf.IndexedSlices) else tensor
    if tf.executing_eagerly():
        return hasattr(tensor, "numpy")
    return getattr(tensor, "graph", None) is tf.compat.v1.get_default_graph()


def joined(outputs: Any, tapped: Mapping[str, Any]) -> Any:
    """What `split` takes apart."""
    return {_OUTPUTS: outputs, _TAPPED: dict(tapped)} if tapped else outputs
