"""The callbacks of one `as_hooks` call: configuration that outlives any session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hookbridge import errors
from hookbridge.adapters.guests import kinds as guests
from hookbridge.adapters.guests import roles
from hookbridge.adapters.live_model import clone as shadow_model
from hookbridge.adapters.session_graph.steps import StepGraph
from hookbridge.adapters.session_loop import checks as callback_checks
from hookbridge.adapters.session_loop import v1_tensorboard as stand_ins
from hookbridge.adapters.session_loop.evaluation import PredictRun, TestRun
from hookbridge.adapters.session_loop.run import SessionRun
from hookbridge.adapters.session_loop.training import TrainRun
from hookbridge.adapters.session_loop.validation import as_validation


class CallbackGroup:
    """What `as_hooks` was given for its callbacks.

    It makes a new run state in each session's first `begin`, so that the same hooks
    serve one `train` after the other, and `evaluate` in between.

    Args:
      callbacks: the guests, in order.
      steps_per_epoch: training steps in an epoch.
      epochs: the run stops after this many.
      model: the Keras 2 model of the graph, or a function that returns it.
      logs: entries of `logs`.
      validation: see `hookbridge.adapters.session_loop.validation.as_validation`.
      learning_rate: tensor, variable or name.
      params: further entries of `callback.params`.
    """

    def __init__(
        self,
        callbacks: Sequence[Any],
        *,
        steps_per_epoch: int | None,
        epochs: int | None,
        model: Any,
        logs: Mapping[str, Any] | None,
        validation: Any,
        learning_rate: Any,
        params: Mapping[str, Any] | None,
    ) -> None:
        self.callbacks = [stand_ins.effective(c) for c in callbacks]
        self.steps_per_epoch = _positive("steps_per_epoch", steps_per_epoch)
        self.epochs = _positive("epochs", epochs)
        self.model = model
        self.logs = _mapping("logs", logs)
        self.validation = validation
        self.learning_rate = learning_rate
        self.params = _mapping("params", params)
        self.flavours = frozenset(map(guests.flavour_of, callbacks))
        self.run: SessionRun | None = None
        self._skipped: set[str] = set()
        self._check()

    def _check(self) -> None:
        if self.epochs is not None and self.steps_per_epoch is None:
            raise errors.EpochsUndefinedError(
                f"`epochs={self.epochs}` was given without `steps_per_epoch`; expected "
                "both: `as_hooks(..., steps_per_epoch=..., epochs=...)`."
            )
        if self.model is not None and not _is_provider(self.model):
            shadow_model.check(self.model)
        as_validation(self.validation)
        for callback in self.callbacks:
            callback_checks.check_guest(callback, has_model=self.model is not None)
            if self.steps_per_epoch is None and callback_checks.needs_epochs_only(
                callback
            ):
                raise callback_checks.epochs_undefined(callback)

    def keras_model(self, graph: Any) -> Any:
        """The Keras model of a graph, or None.

        Raises:
          errors.RefusedError: it is a Keras 3 model.
          errors.InvalidArgumentError: it is no Keras model, or of another graph.
        """
        model = self.model() if _is_provider(self.model) else self.model
        if model is None:
            return None
        shadow_model.check(model)
        for weight in model.weights:
            if getattr(weight, "graph", graph) is not graph:
                raise errors.InvalidArgumentError(
                    f"`model` is `{model.name}`, whose weight `{weight.name}` is not "
                    "in the graph of this session. Build the model inside the "
                    "session's graph, or give a function that returns the model of "
                    "the present graph."
                )
            break
        return model

    def takes_part(self, member: Any) -> bool:
        """Whether a member's callback is called on this worker."""
        if roles.runs_here(member.role):
            return True
        name = guests.name_of(member.callback)
        if name not in self._skipped:
            self._skipped.add(name)
            roles.say_skipped(member.callback, member.role)
        return False

    def begin(self, member: Any) -> SessionRun:
        """`begin` of a member: joins the session's run or starts a new one."""
        import tensorflow as tf

        graph = tf.compat.v1.get_default_graph()
        run = self.run
        if (
            run is None
            or run.graph is not graph
            or run.session is not None
            or run.finished
            or any(m is member for m in run.members)
        ):
            run = self.run = self._new_run(graph)
        run.join(member)
        return run

    def _new_run(self, graph: Any) -> SessionRun:
        import tensorflow as tf

        counter = tf.compat.v1.train.get_global_step(graph)
        trained = graph.get_collection(tf.compat.v1.GraphKeys.TRAINABLE_VARIABLES)
        callback_checks.check_variables(self.callbacks, [counter, *trained])
        eval_steps = graph.get_collection(tf.compat.v1.GraphKeys.EVAL_STEP)
        if eval_steps:
            return TestRun(self, graph, counter, StepGraph(graph, eval_steps[0]))
        steps = StepGraph(graph, counter)
        if steps.trains:
            return TrainRun(self, graph, counter, steps)
        return PredictRun(self, graph, counter)


def _is_provider(model: Any) -> bool:
    return callable(model) and shadow_model.keras_of(model) is None


def _positive(name: str, value: Any) -> int | None:
    if value is None:
        return None
    try:
        good = not isinstance(value, bool) and int(value) == value and value >= 1
    except (TypeError, ValueError, OverflowError):
        good = False  # no number, NaN, infinite
    if not good:
        raise errors.InvalidArgumentError(
            f"`{name}` is {value!r}; expected an integer of at least 1, or None."
        )
    return int(value)


def _mapping(name: str, value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(k, str) for k in value):
        raise errors.InvalidArgumentError(
            f"`{name}` is {value!r}; expected a dict with string keys."
        )
    return dict(value)
