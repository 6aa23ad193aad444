"""Which models train in a v1 graph, and the functions that their loops call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hookbridge import errors
from hookbridge.adapters.guests import kinds
from hookbridge.ground.patching import Patches, assign
from hookbridge.ground.protocols import Hook, KerasModel, Session


class LoopFunction:
    """The function of one loop of a model, for as long as a run goes on.

    In its first call Keras's function lets its session make a callable, and keeps it.
    Here another session makes the callable.

    Args:
      model: the model.
      mode: the loop's: "train", "test" or "predict".
      session_of: returns the session that makes the callable, for Keras's function and
        Keras's session.
    """

    def __init__(
        self, model: KerasModel, mode: str, session_of: Callable[[Any, Any], Any]
    ) -> None:
        self._model = model
        self._name = f"{mode}_function"
        self._session_of = session_of
        self._adopted: dict[int, tuple[Any, Patches]] = {}
        make = f"_make_{mode}_function"
        original = getattr(model, make)

        def make_and_adopt() -> None:
            original()
            self._adopt()

        # A loop over a generator makes its function in its first step.
        self._maker = Patches(model, {make: make_and_adopt})

    def install(self) -> None:
        self._maker.install()
        self._adopt()

    def remove(self) -> None:
        self._maker.remove()
        while self._adopted:
            function, methods = self._adopted.popitem()[1]
            methods.remove()
            assign(function, _callable_fn=None)

    def _adopt(self) -> None:
        """Let Keras's present function make its callable by the run's session."""
        function = getattr(self._model, self._name, None)
        if function is None or id(function) in self._adopted:
            return
        make_callable = function._make_callable

        def make(
            arrays: object, symbols: object, values: object, session: Session
        ) -> None:
            make_callable(arrays, symbols, values, self._session_of(function, session))

        methods = Patches(function, {"_make_callable": make})
        methods.install()
        assign(function, _callable_fn=None)
        self._adopted[id(function)] = (function, methods)


def is_graph_model(model: KerasModel) -> bool:
    """Return whether Keras trains a model by session runs."""
    # It does so after `disable_v2_behavior()` or `disable_eager_execution()`, and for a
    # model that was built under a `tf.Graph`.
    return hasattr(model, "_make_train_function")


def check_model(model: KerasModel, hook: Hook) -> None:
    """Refuse a model of a v1 graph whose steps are not runs of one session.

    Args:
      model: the model whose `fit` has begun.
      hook: the hook that the error names.

    Raises:
      errors.RefusedError: the model trains under a strategy, or runs eagerly.
    """
    is_copy = type(model).__name__ == "DistributedCallbackModel"
    if is_copy or model._distribution_strategy:
        why = (
            "trains under a `tf.distribute` strategy, which makes copies of it. Leave "
            "the strategy out, leave v2 behaviour on, or keep the session loop."
        )
    elif model.run_eagerly:
        why = "runs eagerly. Compile it with `run_eagerly=False`."
    else:
        return
    raise errors.RefusedError(
        f"`{kinds.name_of(hook)}` cannot run in `Model.fit` of `{model.name}`: the "
        f"model is built in a v1 graph and {why}",
        see="v1 graph in fit",
    )
