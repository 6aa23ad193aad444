"""A session's weights as a callback sees them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from hookbridge import errors
from hookbridge.adapters.live_model import mirrors
from hookbridge.adapters.session_graph import saved, session_variables
from hookbridge.ground import compat
from hookbridge.ground.groups import grouped


class WeightsView:
    """What a model, or a layer of it, shows of its weights."""

    _live_weights: LiveWeights

    @property
    def weights(self) -> list[Any]:
        """Eager variables with the session's values; assigning sets the weights."""
        return self._live_weights.mirrors.hand_out(self._live_weights.all)

    @property
    def trainable_weights(self) -> list[Any]:
        """The trained ones among `weights`."""
        return self._live_weights.mirrors.hand_out(self._live_weights.trainable)

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The others, such as moving averages."""
        return self._live_weights.mirrors.hand_out(self._live_weights.others)

    variables = weights
    trainable_variables = trainable_weights
    non_trainable_variables = non_trainable_weights

    def count_params(self) -> int:
        """Return number of scalars in `weights`."""
        weights = self._live_weights
        unknown = [v for v in weights.all if v.shape.num_elements() is None]
        sizes = [v.shape.num_elements() or 0 for v in weights.all]
        sizes += [np.size(value) for value in weights.read(unknown)]
        return sum(sizes)

    def get_weights(self) -> list[Any]:
        """Return the session's values as numpy arrays."""
        return self._live_weights.read(self._live_weights.all)

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Assign numpy arrays in the session."""
        self._live_weights.write(self._live_weights.all, weights)


class LiveLayer(WeightsView):
    """The variables under one name scope of a graph, as a Keras layer shows them."""

    def __init__(self, name: str, weights: LiveWeights) -> None:
        self.name = name
        self.trainable: bool = bool(weights.trainable)
        self._live_weights = weights

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise errors.LiveModelError(
            f"`layer.{name}` was asked for, but this callback runs in a session loop "
            f"under hookbridge, where the layer `{self.name}` is what the graph has in "
            "that scope: its variables. It offers `name`, `weights`, `get_weights()`, "
            "`set_weights()` and `count_params()`. With `as_hooks(..., model=<the "
            "tf.keras or tf_keras model in the graph>)` it is a Keras layer.",
            see="model in a session",
        )


class LiveWeights:
    """The weights of the model in a graph; `order` is that of `get_weights`."""

    def __init__(
        self,
        trainable: Sequence[Any],
        others: Sequence[Any],
        session: Callable[[], Any],
        order: Sequence[Any] | None = None,
        shared: mirrors.Mirrors | None = None,
    ) -> None:
        self.trainable: list[Any] = list(trainable)
        self.others: list[Any] = list(others)
        self.all: list[Any] = list([*trainable, *others] if order is None else order)
        self._session = session
        self.mirrors: mirrors.Mirrors = shared or mirrors.Mirrors(session)

    def session(self) -> Any:
        """Return the raw session."""
        session = self._session()
        if session is None:
            raise errors.LiveModelError(
                "A callback asked for weights before the session exists (in "
                "`set_model`). Under hookbridge they can be read from "
                "`on_train_begin` on.",
                see="model in a session",
            )
        return session

    def read(self, variables: Sequence[Any]) -> list[Any]:
        """Return values of graph variables as numpy arrays."""
        self.mirrors.push()  # what callbacks assigned earlier in this event
        return session_variables.read(self.session(), variables)

    def entries(self, variables: Sequence[Any]) -> dict[saved.SavedArray, Any]:
        """Return the values of graph variables, as a checkpoint has them."""
        return dict(
            zip(map(saved.entry_of, variables), self.read(variables), strict=True)
        )

    def write(self, variables: Sequence[Any], values: Sequence[Any]) -> None:
        """Assign numpy arrays to graph variables."""
        if len(values) != len(variables):
            raise errors.InvalidArgumentError(
                f"`set_weights` received {len(values)} arrays; expected "
                f"{len(variables)}: {', '.join(v.name for v in variables)}."
            )
        self.mirrors.push()  # a later push would overwrite what is set here
        session_variables.write(self.session(), zip(variables, values, strict=True))
        self.mirrors.expire(variables)

    @contextlib.contextmanager
    def file_call(self) -> Iterator[None]:
        """Let an eager call of the clone write or read a file, in a context."""
        self.session()
        with compat.private("eager_mode")(), self.mirrors.file_call(self.all):
            yield

    def layers(self) -> list[LiveLayer]:
        """Return the variables grouped by name scope, in the order of `get_weights`."""
        named = [(variable.op.name, variable) for variable in self.all]
        scopes = grouped((name.rpartition("/")[0] or name, v) for name, v in named)
        return [LiveLayer(name, self._part(part)) for name, part in scopes.items()]

    def _part(self, variables: Sequence[Any]) -> LiveWeights:
        """Return some of the weights, which share their mirrors with all."""
        trained = {id(v) for v in self.trainable}
        return LiveWeights(
            [v for v in variables if id(v) in trained],
            [v for v in variables if id(v) not in trained],
            self._session,
            variables,
            self.mirrors,
        )
