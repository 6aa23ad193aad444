"""Notes, while a Keras step is traced, tensors that the step does not return.

These are the batch loss, the gradients, the learning rate of a schedule and, in a step
that runs eagerly, the outputs of layers.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf
import wrapt

from hookbridge.adapters.fit_loop.eager_step import output_keys
from hookbridge.adapters.fit_loop.first_replica import is_first
from hookbridge.adapters.keras_model import optimizers
from hookbridge.adapters.keras_model.structure import layers_of
from hookbridge.ground import patching
from hookbridge.ground.protocols import KerasModel, Optimizer

# The prefix of the keys of gradients.
GRADIENTS = "gradients/"
# Key of the learning rate that a schedule gives for the step.
SCHEDULED_RATE = "learning_rate"


class Spies:
    """Notes tensors of one model's step, by their keys."""

    def __init__(self, model: KerasModel, keys: Collection[str]) -> None:
        self._model = model
        self._keys = keys
        self.feeds: Mapping[str, Any] = {}
        self.has_updated = False  # whether a step has used the model's optimizer
        # Replicas are traced in threads of their own.
        self._local = threading.local()
        # What a step notes that calls `strategy.run` itself: its first replica's.
        self._of_replicas: dict[str, Any] | None = None
        # The graph of that step, which its replicas share. A loop in another thread
        # has one of its own.
        self._graph: Any = None

    @contextlib.contextmanager
    def watching(self) -> Iterator[dict[str, Any]]:
        """Note what one call of the step computes: `{key: tensor}`."""
        local = self._local
        noted: dict[str, Any] = {}
        local.noted = noted
        local.compiled_loss = local.scale = None
        self._of_replicas, self._graph = noted, tf.compat.v1.get_default_graph()
        try:
            yield noted
        finally:
            del local.noted
            self._of_replicas = self._graph = None
        if local.compiled_loss is not None:
            # A `compute_loss` of the user may return more than the compiled losses.
            noted.setdefault("loss", local.compiled_loss)

    def scale_of(self, key: str) -> Any:
        """Return the loss scale in the last watched step's gradient `key`, or None."""
        is_gradient = key.startswith(GRADIENTS)
        return getattr(self._local, "scale", None) if is_gradient else None

    @contextlib.contextmanager
    def installed(self, is_eager: bool) -> Iterator[None]:
        """Set the spies on the model and its optimizer."""
        model = self._model
        with contextlib.ExitStack() as stack:
            compute_loss = getattr(model, "compute_loss", None)
            if callable(compute_loss):

                def spy_loss(*args: object, **kwargs: object) -> Any:
                    loss = compute_loss(*args, **kwargs)
                    if tf.is_tensor(loss):
                        self._note("loss", tf.convert_to_tensor(loss))
                    return loss

                stack.enter_context(patching.patched(model, compute_loss=spy_loss))
            losses = vars(model).get("compiled_loss")
            if callable(losses):  # Keras 2, for steps that do not use `compute_loss`
                spied = wrapt.FunctionWrapper(losses, self._compiled_loss)
                stack.enter_context(patching.patched(model, compiled_loss=spied))
            self._spy_updates(optimizers.optimizer_of(model), stack)
            if is_eager:
                for layer in layers_of(model):
                    if any(key in self._keys for key in output_keys(layer)):
                        call = self._spy_layer(layer, layer.call)
                        stack.enter_context(patching.patched(layer, call=call))
            yield

    def _spy_updates(self, optimizer: Any, stack: contextlib.ExitStack) -> None:
        """Note the gradients that an optimizer gets, and its schedule's rate."""
        # Of Keras 3 `apply`, which its `apply_gradients` calls too.
        has_apply = callable(getattr(optimizer, "apply", None))
        name = "apply" if has_apply else "apply_gradients"
        update = getattr(optimizer, name, None)
        if not callable(update):
            return

        def spy(gradients: Any, *args: Any, **kwargs: Any) -> Any:
            self.has_updated = True
            gradients = pairs = list(gradients)  # for `apply_gradients`, of pairs
            if has_apply:
                wanted = args[0] if args else kwargs.get("trainable_variables")
                inner = optimizers.inner_optimizer(optimizer)
                known = getattr(inner, "_trainable_variables", ())
                variables = list(known if wanted is None else wanted)
                pairs = list(zip(gradients, variables, strict=False))
                args, kwargs = (None if wanted is None else variables,), {}
            self._note_gradients(pairs, optimizer)
            with self._feeding_rate(optimizer):
                return update(gradients, *args, **kwargs)

        stack.enter_context(patching.patched(optimizer, **{name: spy}))

    def _spy_layer(self, layer: Any, call: Any) -> Any:
        """Return a method `call` of a layer that notes its output."""

        # A plain wrapper will do: autograph would take it for another function, but
        # an eager step has no autograph.
        @functools.wraps(call)
        def spy(*args: object, **kwargs: Any) -> Any:
            output = call(*args, **kwargs)
            if tf.is_tensor(output):
                for key in output_keys(layer):
                    self._note(key, output)
            return output

        return spy

    def _feeding_rate(
        self, optimizer: Optimizer
    ) -> contextlib.AbstractContextManager[None]:
        """Replace the schedule's learning rate by a fed one, for one update."""
        rate = self.feeds.get(SCHEDULED_RATE)
        if rate is None:
            return contextlib.nullcontext()
        return optimizers.updating_by(optimizer, rate)

    def _note(self, key: str, tensor: tf.Tensor) -> None:
        noted = self._notes_of_thread()
        if noted is not None:
            noted.setdefault(key, tensor)

    def _notes_of_thread(self) -> dict[str, Any] | None:
        """Return where this thread notes tensors, if its replica is watched."""
        noted: dict[str, Any] | None = getattr(self._local, "noted", None)
        of_replicas = self._of_replicas
        if noted is not None or of_replicas is None:
            return noted
        if tf.compat.v1.get_default_graph() is not self._graph:
            return None
        context = tf.distribute.get_replica_context()
        replica = context.replica_id_in_sync_group if context else 0
        return of_replicas if is_first(self._model, replica) else None

    def _compiled_loss(self, losses: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        loss = losses(*args, **kwargs)
        if hasattr(self._local, "noted") and tf.is_tensor(loss):
            self._local.compiled_loss = tf.convert_to_tensor(loss)
        return loss

    def _note_gradients(
        self, pairs: Sequence[tuple[Any, Any]], optimizer: Optimizer
    ) -> None:
        """Note each gradient by its variable, their scale and the scheduled rate."""
        if self._notes_of_thread() is None:
            return
        for gradient, variable in pairs:
            if isinstance(gradient, (tf.Tensor, tf.IndexedSlices)):
                name = str(getattr(variable, "path", None) or variable.name)
                name = name.split(":")[0].removeprefix(f"{self._model.name}/")
                self._note(f"{GRADIENTS}{name}", gradient)
        if any(key.startswith(GRADIENTS) for key in (*self._keys, *self.feeds)):
            # Read now, since the update may change the scale.
            self._local.scale = optimizers.loss_scale(optimizer)
        rate = optimizers.scheduled_rate(optimizer)
        if rate is None and SCHEDULED_RATE in self._keys:
            # Hooks have found the rate of a schedule, which a callback has replaced.
            rate = optimizers.rate_of_next_step(optimizer)
        if rate is not None:
            self._note(SCHEDULED_RATE, rate)
