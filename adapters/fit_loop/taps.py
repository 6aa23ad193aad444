"""Takes tensors out of a Keras model's step while Keras traces it.

The step method of the model instance (`train_step`, `test_step`,
`predict_step`) is replaced while Keras builds and traces its function; the
replacement calls the user's own step and adds the wanted tensors to what it
returns, under one key that is taken off again before Keras sees the result.
This works through everything Keras puts around a step: replicas, inner
functions, XLA, loops over several steps.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from hookbridge.adapters.live_session.names import StepNames, layer_aliases, layers_of
from hookbridge.adapters.live_session.variables import tf_variable

TAPS = "hookbridge_taps"
OUTPUTS = "hookbridge_outputs"
# What the keys of gradients begin with.
GRADIENTS = "gradients/"
# Key of the learning rate that a schedule gives for the step.
SCHEDULED_RATE = "learning_rate"


class StepTap:
    """The replacement of one model's step method.

    Args:
      model: the Keras model.
      step: the user's bound step method.
      wanted: keys of the tensors to take out, see `StepTensor.key`.
      names: a catalogue to fill while the step is traced.
    """

    def __init__(
        self,
        model: Any,
        step: Any,
        wanted: Sequence[str],
        names: StepNames,
    ) -> None:
        self._model = model
        self._step = step
        self._wanted = tuple(wanted)
        self._names = names
        self._first_replica: dict[str, Any] = {}
        self._local = threading.local()
        # {key: tensor} to put in the place of the step's own, set while tracing.
        self.feeds: Mapping[str, Any] = {}
        # A variable that counts the steps made, where somebody needs the count.
        self.counter: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        context = tf.distribute.get_replica_context()
        replica = context.replica_id_in_sync_group if context else 0
        replicas = context.num_replicas_in_sync if context else 1
        # Replicas are traced in threads of their own that take turns.
        seen: dict[str, Any] = {}
        self._local.seen = seen
        self._local.compiled_loss = self._local.scale = None
        try:
            outputs = self._step(*args, **kwargs)
        finally:
            del self._local.seen
        if self._local.compiled_loss is not None:
            # An own `compute_loss` may have more in it than the compiled losses.
            seen.setdefault("loss", self._local.compiled_loss)
        aliases = self._aliases(seen, outputs)
        if "loss" in seen and replicas > 1 and "loss" in self._wanted:
            # Each replica's loss is scaled by the number of replicas: their sum
            # is the loss of the whole batch.
            aliases["loss"] = context.all_reduce("SUM", aliases["loss"])
        if _is_first(replica):
            if self.counter is not None:
                self.counter.assign_add(1)
            self._catalogue(aliases)
            self._first_replica = {
                key: self._value(key, aliases) for key in self._wanted
            }
            for key, value in self.feeds.items():
                if key != SCHEDULED_RATE:
                    self._feed(key, self._find(key, aliases), value)
        if not self._wanted:
            return outputs
        # The same tensor objects from every replica: Keras then passes them
        # through instead of summing them over replicas.
        return {OUTPUTS: outputs, TAPS: dict(self._first_replica)}

    def _value(self, key: str, aliases: Mapping[str, Any]) -> Any:
        """What a hook gets: a gradient is dense and without the scale of the loss."""
        tensor = self._find(key, aliases)
        if isinstance(tensor, tf.IndexedSlices):
            tensor = tf.convert_to_tensor(tensor)
        scale = self._scale_of(key)
        return tensor if scale is None else tensor / tf.cast(scale, tensor.dtype)

    def _scale_of(self, key: str) -> Any:
        return self._local.scale if key.startswith(GRADIENTS) else None

    def _feed(self, key: str, tensor: Any, value: Any) -> None:
        """Gives what the step computes from `tensor` the fed value instead."""
        value = tf.ensure_shape(tf.cast(value, tensor.dtype), tensor.shape)
        if (scale := self._scale_of(key)) is not None:
            value *= tf.cast(scale, value.dtype)
        for op in tensor.consumers():
            for index, taken in enumerate(op.inputs):
                if taken is tensor:
                    op._update_input(index, value)

    def _aliases(self, seen: Mapping[str, Any], outputs: Any) -> dict[str, Any]:
        aliases: dict[str, Any] = {}
        if isinstance(outputs, Mapping):
            aliases.update({k: v for k, v in outputs.items() if tf.is_tensor(v) and k})
        aliases.update(seen)
        return aliases

    def _catalogue(self, aliases: Mapping[str, Any]) -> None:
        names = self._names
        if names.traced or names.is_eager:
            return
        for alias, tensor in aliases.items():
            names.add_alias(alias, tensor.dtype, tensor.shape)
            if isinstance(tensor, tf.IndexedSlices):
                names.of_rows.add(alias)
        graph = tf.compat.v1.get_default_graph()
        names.add_traced(
            t
            for op in graph.get_operations()
            if not op.name.startswith("replica_")
            for t in op.outputs
        )

    def _find(self, key: str, aliases: Mapping[str, Any]) -> Any:
        if key in aliases:
            return aliases[key]
        graph = tf.compat.v1.get_default_graph()
        try:
            return graph.get_tensor_by_name(key)
        except KeyError:
            # Scopes are numbered anew in each function, a loop's body included.
            here = StepNames(self._model)
            here.add_traced(t for op in graph.get_operations() for t in op.outputs)
            found = here.find(here.canonical_name(key))
            if found is None:
                raise
            return graph.get_tensor_by_name(found.key)

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Spies on the model while Keras may be tracing this step.

        Notes the batch loss, the gradients and a scheduled learning rate, which
        Keras's own steps compute but do not return.
        """
        model, optimizer = self._model, getattr(self._model, "optimizer", None)
        with contextlib.ExitStack() as stack:
            compute_loss = getattr(model, "compute_loss", None)
            if callable(compute_loss):

                def spy_loss(*args: Any, **kwargs: Any) -> Any:
                    loss = compute_loss(*args, **kwargs)
                    if tf.is_tensor(loss):
                        self._note("loss", tf.convert_to_tensor(loss))
                    return loss

                stack.enter_context(instance_method(model, "compute_loss", spy_loss))
            losses = vars(model).get("compiled_loss")
            if callable(losses):  # Keras 2, for steps that do not use `compute_loss`
                spy = _SpiedCall(losses, self._note_compiled_loss)
                stack.enter_context(instance_method(model, "compiled_loss", spy))
            self._spy_updates(optimizer, stack)
            if self._names.is_eager:
                for layer in layers_of(model):
                    if any(alias in self._wanted for alias in layer_aliases(layer)):
                        call = self._spy_layer(layer, layer.call)
                        stack.enter_context(instance_method(layer, "call", call))
            yield

    def _spy_updates(self, optimizer: Any, stack: contextlib.ExitStack) -> None:
        apply = getattr(optimizer, "apply", None)
        if callable(apply):  # Keras 3, whose `apply_gradients` calls it too

            def spy_apply(gradients: Any, trainable_variables: Any = None) -> Any:
                gradients, given = list(gradients), trainable_variables
                if given is None:
                    inner = getattr(optimizer, "inner_optimizer", optimizer)
                    known = list(getattr(inner, "_trainable_variables", ()))
                else:
                    known = given = list(given)
                pairs = list(zip(gradients, known, strict=False))
                self._note_gradients(pairs, optimizer)
                with self._scheduled(optimizer):
                    return apply(gradients, given)

            stack.enter_context(instance_method(optimizer, "apply", spy_apply))
            return
        apply_gradients = getattr(optimizer, "apply_gradients", None)
        if callable(apply_gradients):

            def spy_gradients(pairs: Any, *args: Any, **kwargs: Any) -> Any:
                pairs = list(pairs)
                self._note_gradients(pairs, optimizer)
                with self._scheduled(optimizer):
                    return apply_gradients(pairs, *args, **kwargs)

            stack.enter_context(
                instance_method(optimizer, "apply_gradients", spy_gradients)
            )

    def _spy_layer(self, layer: Any, call: Any) -> Any:
        # Without autograph in an eager step, a wrapper changes nothing.
        @functools.wraps(call)
        def spy(*args: Any, **kwargs: Any) -> Any:
            output = call(*args, **kwargs)
            if tf.is_tensor(output):
                for alias in layer_aliases(layer):
                    self._note(alias, output)
            return output

        return spy

    def _scheduled(self, optimizer: Any) -> contextlib.AbstractContextManager[None]:
        """A fed learning rate in the place of the schedule's, for one update."""
        rate = self.feeds.get(SCHEDULED_RATE)
        if rate is None:
            return contextlib.nullcontext()
        inner = getattr(optimizer, "inner_optimizer", optimizer)
        return instance_method(inner, "_learning_rate", rate)

    def _note(self, alias: str, tensor: Any) -> None:
        seen = getattr(self._local, "seen", None)
        if seen is not None:
            seen.setdefault(alias, tensor)

    def _note_compiled_loss(self, loss: Any) -> None:
        if getattr(self._local, "seen", None) is not None and tf.is_tensor(loss):
            self._local.compiled_loss = tf.convert_to_tensor(loss)

    def _note_gradients(self, pairs: Sequence[tuple[Any, Any]], optimizer: Any) -> None:
        if not hasattr(self._local, "seen"):
            return
        for gradient, variable in pairs:
            if isinstance(gradient, (tf.Tensor, tf.IndexedSlices)):
                name = str(getattr(variable, "path", None) or variable.name)
                name = name.split(":")[0].removeprefix(f"{self._model.name}/")
                self._note(f"{GRADIENTS}{name}", gradient)
        if any(key.startswith(GRADIENTS) for key in (*self._wanted, *self.feeds)):
            # Before the update, which may change it.
            self._local.scale = _loss_scale(optimizer)
        rate = _scheduled_rate(optimizer)
        if rate is not None:
            self._note(SCHEDULED_RATE, rate)


def _is_first(replica: Any) -> bool:
    """Whether that is the first replica: a number, or a tensor of one."""
    number = tf.get_static_value(replica) if tf.is_tensor(replica) else replica
    return number is None or int(number) == 0


@contextlib.contextmanager
def instance_method(target: Any, name: str, method: Any) -> Iterator[None]:
    """Sets `target.<name>` on the instance, past its `__setattr__`, for a while."""
    attributes = vars(target)
    missing = object()
    before = attributes.get(name, missing)
    attributes[name] = method
    try:
        yield
    finally:
        if before is missing:
            attributes.pop(name, None)
        else:
            attributes[name] = before


class _SpiedCall:
    """Something that is called and looked at, whose results are noted.

    Args:
      target: what it stands for.
      note: called with each result.
    """

    def __init__(self, target: Any, note: Callable[[Any], None]) -> None:
        self._target = target
        self._note = note

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = self._target(*args, **kwargs)
        self._note(result)
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)


def _loss_scale(optimizer: Any) -> Any:
    """By what a Keras 3 optimizer divides the gradients it is given, or None.

    Keras 2 gives its optimizers gradients without the scale of the loss.
    """
    scale = getattr(optimizer, "dynamic_scale", None)
    if scale is not None:
        return tf.identity(tf_variable(scale))
    return getattr(optimizer, "loss_scale_factor", None)


def _scheduled_rate(optimizer: Any) -> Any:
    """The value that a schedule gives for this step; None without a schedule."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    schedule = getattr(inner, "_learning_rate", None)
    if not callable(schedule):
        return None
    return tf.cast(schedule(tf_variable(inner.iterations)), tf.float32)


def split(result: Any) -> tuple[Any, dict[str, Any]]:
    """Takes the taps off a step's result: `(what Keras gets, taps)`."""
    if isinstance(result, Mapping) and TAPS in result:
        return result[OUTPUTS], dict(result[TAPS])
    return result, {}
