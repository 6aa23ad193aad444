"""Sessions whose `run` goes through callables of TensorFlow's runtime.

Around each step, `Session.run` repeats the same work: it looks up its fetches,
serialises options and metadata and extends the graph. A callable does this work once.
`MonitoredSession` cannot use one: because of its hooks, it knows its fetches only when
a step begins. The session below keeps a callable for each set of fetches and feeds.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.guests import kinds
from hookbridge.ground import compat
from hookbridge.ground.protocols import Session
from hookbridge.ground.structures import (
    RecentlyUsed,
    UnknownStructureError,
    copy_structure,
    is_empty,
    structure_key,
)
from hookbridge.ground.texts.nearest_names import suggestion

v1 = tf.compat.v1

# Types that `run` converts by `numpy.asarray` alone.
_PLAIN = (np.ndarray, np.generic, float, bool, list, tuple)


class CallableSession(tf.compat.v1.Session):  # type: ignore[misc]
    """A session whose runs go through a callable from the second time on.

    Runs stay ordinary with options that are not empty, and with fetches or feeds of
    unusual types.
    """

    # None if the session must not, or must no longer, use callables. A class attribute,
    # because sessions become callable sessions after they were made.
    _steps: RecentlyUsed | None = None

    @staticmethod
    def adopt(session: Any) -> bool:
        """Make `session` itself a callable session, if that changes nothing else.

        `MonitoredSession`'s session creators make `tf.compat.v1.Session`s, restore
        them and hand them to hooks; they cannot make another class. A session on a
        server, which has no such callables, is not changed, nor is one whose
        configuration fills the `RunMetadata` of plain runs.
        """
        if isinstance(session, CallableSession):
            return True
        if type(session) is not v1.Session or session.sess_str:
            return False
        config = compat.session_config(session)
        if config is not None and (
            config.graph_options.build_cost_model
            or config.experimental.HasField("session_metadata")
        ):
            return False
        session.__class__ = CallableSession
        session._steps = RecentlyUsed()
        return True

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: Any = None,
        run_metadata: Any = None,
    ) -> Any:
        """As `tf.compat.v1.Session.run`."""
        call = None
        if options is None or not options.ByteSize():
            call = self._callable(fetches, feed_dict or {})
        if call is None:
            return super().run(fetches, feed_dict, options, run_metadata)
        result = compat.private("session_do_call")(self, call)
        if run_metadata is not None:
            run_metadata.Clear()  # a plain run gives empty metadata
        return result

    def close(self) -> None:
        """As `tf.compat.v1.Session.close`."""
        self._steps = None
        super().close()

    def _callable(
        self, fetches: object, feeds: Mapping[Any, Any]
    ) -> Callable[[], Any] | None:
        """Return a callable for a run that was made before.

        None for an ordinary run.
        """
        steps = self._steps
        if steps is None or type(feeds) is not dict:
            return None
        try:
            if any(type(tensor) is str for tensor in feeds):
                # A learning rate that a callback sets is fed under both, so that a
                # hook which feeds it too is found.
                find = self.graph.as_graph_element
                feeds = {find(t, allow_operation=False): v for t, v in feeds.items()}
            key = (structure_key(fetches), *map(id, feeds))
        except (UnknownStructureError, KeyError, ValueError, TypeError):
            return None  # `run` raises what is a mistake
        if not all(isinstance(tensor, tf.Tensor) for tensor in feeds):
            return None
        step: _Step | None = steps.get(key)
        if step is not None:
            return step.call(self, feeds)
        # The first run is an ordinary one: it checks what is fetched and fed.
        steps.add(key, _Step(fetches, list(feeds)))
        return None


class _Step:
    """One set of fetches and fed tensors, kept alive because keys contain their ids."""

    def __init__(self, fetches: object, fed: list[Any]) -> None:
        self._fetches, self._fed = copy_structure(fetches), fed
        self._types = [(np.dtype(t.dtype.as_numpy_dtype), t.shape) for t in fed]
        self._run: Callable[..., Any] | None = None
        self._is_ordinary = False

    def call(
        self, session: CallableSession, feeds: Mapping[Any, Any]
    ) -> functools.partial[Any] | None:
        """Return the step with these values; None if it has to be an ordinary run."""
        if self._run is None and not self._is_ordinary:
            self._run = self._make(session)
            self._is_ordinary = self._run is None
        arrays = []
        for (dtype, shape), value in zip(self._types, feeds.values(), strict=True):
            array = value
            if type(value) is not np.ndarray or value.dtype != dtype:
                array = _converted(value, dtype)
            if array is None or not shape.is_compatible_with(array.shape):
                return None
            arrays.append(array)
        return self._run and functools.partial(self._run, *arrays)

    def _make(self, session: CallableSession) -> Callable[..., Any] | None:
        """Return the callable; None if it would not give what `run` gives.

        `run` accepts empty fetches, returns the fed value of a fetch that is fed, and a
        handle for resources; it feeds more than numbers.
        """
        unfeedable = (tf.string, tf.resource, tf.variant)
        if is_empty(self._fetches) or any(
            not t.dtype.is_numpy_compatible or t.dtype in unfeedable for t in self._fed
        ):
            return None
        with session.graph.as_default():
            mapper = compat.private("FetchMapper").for_fetch(self._fetches)
        options = compat.private("config_pb2").CallableOptions()
        options.feed.extend(t.name for t in self._fed)
        elements = mapper.unique_fetches()
        is_op = [isinstance(element, tf.Operation) for element in elements]
        for element, has_no_value in zip(elements, is_op, strict=True):
            is_handle = getattr(element, "dtype", None) == tf.resource
            if is_handle or element.name in options.feed:
                return None
            (options.target if has_no_value else options.fetch).append(element.name)
        call = compat.private("session_make_callable")(session, options)

        def run(*arrays: Any) -> Any:
            results = iter(call(*arrays))
            return mapper.build_results([None if op else next(results) for op in is_op])

        return run


def _converted(value: object, dtype: Any) -> Any:
    """Return a value as an array; None if `run` would treat it specially or raise."""
    if not isinstance(value, _PLAIN) and type(value) is not int:
        return None
    try:
        array = np.asarray(value, dtype)
        # `run` raises for a number that the type cannot hold.
        return None if type(value) is int and array != value else array
    except (TypeError, ValueError, OverflowError):
        return None


class CallableSessionHook(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Turns a session into a `CallableSession`, if that changes nothing else.

    It works in `MonitoredTrainingSession`, `SingularMonitoredSession` and `Estimator`,
    also after a recovery. It leaves alone a session on a server, one of a class of the
    user's, and one whose `ConfigProto` asks for a cost model or has session metadata.
    It acts in `after_create_session`, once for each session, on the thread of the loop.
    In `Model.fit` it has no effect.
    """

    def after_create_session(self, session: Session, coord: object) -> None:
        """Adopt the session."""
        CallableSession.adopt(session)


def training_session(hooks: Iterable[Any] | None = None, **config: Any) -> Any:
    """Return a `MonitoredTrainingSession` whose steps run through callables.

    TensorFlow's own code calls the hooks, so that every event, merge, stop, error and
    recovery is the same as in `tf.compat.v1.train.MonitoredTrainingSession`. Only the
    run of the merged fetches goes through a callable; one is made for each set of
    fetches.

        with hb.loops.training_session(hooks=hooks, checkpoint_dir=path) as session:
            while not session.should_stop():
                session.run(train_op)

    Args:
      hooks: `SessionRunHook`s.
      **config: any other argument of `MonitoredTrainingSession`.

    Returns:
      The `tf.compat.v1.train.MonitoredSession`.

    Raises:
      errors.NotAGuestError: `hooks` has something that is not a hook.
      errors.InvalidArgumentError: there is no such argument.
      Exception: all that `MonitoredTrainingSession` and the hooks raise.
    """
    hooks = kinds.hooks_only(hooks)
    signature = inspect.signature(tf.compat.v1.train.MonitoredTrainingSession)
    for name in config:
        try:
            signature.bind_partial(**{name: None})
        except TypeError as e:
            known = [f"{parameter}=" for parameter in signature.parameters]
            raise errors.InvalidArgumentError(
                f"Received `{name}=`, which `MonitoredTrainingSession` does not have"
                f"{suggestion(f'{name}=', known, limit=1)}."
            ) from e
    return tf.compat.v1.train.MonitoredTrainingSession(
        hooks=[*hooks, CallableSessionHook()], **config
    )
