"""Keras's own session, as hooks get it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hookbridge import errors


class KerasSession(tf.compat.v1.Session):  # type: ignore[misc]
    """A second handle of Keras's session; closing the handle does nothing.

    Keras lets it make callables, so that each step goes to the run with hooks. A hook's
    `run` is an ordinary run of the session. Only the step is not: `MonitoredSession`
    asks for it by `StepCall.fetches`.
    """

    def __init__(self, session: Any) -> None:
        # Not `super().__init__`, which opens a session with variables of its own.
        self.__dict__.update(vars(session))
        self.native = session
        self.make_step: Callable[[Any], Any] | None = None
        self.step: Any = None

    def _make_callable_from_options(self, callable_options: Any) -> Any:
        assert self.make_step is not None
        return self.make_step(callable_options)

    def run(
        self,
        fetches: Any,
        feed_dict: Any = None,
        options: Any = None,
        run_metadata: Any = None,
    ) -> Any:
        step = self.step
        if step is not None and type(fetches) is dict:
            caller = fetches.get("caller")
            if caller is not None and caller is step.fetches:
                return step.run(fetches, feed_dict, options, run_metadata)
        try:
            return self.native.run(fetches, feed_dict, options, run_metadata)
        except tf.errors.InvalidArgumentError as e:
            if step is None or "You must feed a value for placeholder" not in str(e):
                raise
            if any(f"'{name}'" in str(e) for name in step.from_dataset):
                raise errors.LiveSessionError(
                    f"`session.run` was asked for {fetches!r}, which the step computes "
                    "from a dataset. Return it from `before_run` as "
                    "`SessionRunArgs(fetches)`.",
                    see="v1 graph in fit",
                ) from e
        # A tensor of the step, fetched outside a step, is computed on the last batch.
        feeds = {**step.last_feeds, **(feed_dict or {})}
        return self.native.run(fetches, feeds, options, run_metadata)

    def close(self) -> None:
        """Does nothing: the model lives in the session."""

    def __eq__(self, other: Any) -> bool:
        # Keras compares sessions: for an unequal one it would make a new callable.
        return other is self or other is self.native

    def __hash__(self) -> int:
        return hash(self.native)

    def __del__(self) -> None:
        """Leaves the session to Keras."""
