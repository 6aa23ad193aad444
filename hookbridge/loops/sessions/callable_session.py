"""Sessions whose `run` goes through `Session.make_callable`.

Around each step, `Session.run` repeats the same work: it looks up its fetches,
serialises options and metadata and extends the graph. A callable does this work once.
`MonitoredSession` cannot use one: because of its hooks, it knows its fetches only when
a step begins. The session below keeps a callable for each set of fetches.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from hookbridge import compat
from hookbridge.adapters.guests import kinds
from hookbridge.loops.sessions.fed_callable import FedCallable, feed_key, without_copies
from hookbridge.structures import (
    RecentlyUsed,
    UnknownStructureError,
    copy_structure,
    is_empty,
    structure_key,
)

v1 = tf.compat.v1

# Marks fetches that stay with `Session.run`.
_ORDINARY = object()


class _FetchSet(NamedTuple):
    """One set of fetches and fed tensors, kept alive because keys contain their ids.

    `call` runs them; it is None until they are fetched for the second time.
    """

    fetches: Any
    call: Any
    fed: tuple[Any, ...]


class CallableSession(tf.compat.v1.Session):  # type: ignore[misc]
    """A session whose runs go through a callable from the second time on.

    Runs stay ordinary with options that are not empty, with fetches or feeds of unusual
    types, and with feeds on a server.
    """

    # None if the session must not, or must no longer, use callables. A class attribute,
    # because sessions become callable sessions after they were made.
    _fetch_sets: RecentlyUsed | None = None

    @staticmethod
    def adopt(session: Any) -> bool:
        """Makes `session` itself a callable session, if that changes nothing else.

        `MonitoredSession`'s session creators make `tf.compat.v1.Session`s, restore
        them and hand them to hooks; they cannot make another class. One whose
        configuration fills the `RunMetadata` of plain runs is not changed.
        """
        if isinstance(session, CallableSession):
            return True
        if type(session) is not v1.Session:
            return False
        config = compat.session_config(session)
        if config is not None and (
            config.graph_options.build_cost_model
            or config.experimental.HasField("session_metadata")
        ):
            return False
        session.__class__ = CallableSession
        session._fetch_sets = RecentlyUsed()
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
            feed_dict = without_copies(feed_dict) if feed_dict else {}
            call = self._callable(fetches, feed_dict)
        if call is None:
            return super().run(fetches, feed_dict, options, run_metadata)
        result = compat.private("session_do_call")(self, call)
        if run_metadata is not None:
            run_metadata.Clear()  # a plain run gives empty metadata
        return result

    def close(self) -> None:
        """As `tf.compat.v1.Session.close`."""
        self._fetch_sets = None
        super().close()

    def _callable(
        self, fetches: Any, feeds: Mapping[Any, Any]
    ) -> Callable[[], Any] | None:
        fetch_sets = self._fetch_sets
        fed = feed_key(feeds) if type(feeds) is dict else None
        if fetch_sets is None or fed is None:
            return None
        try:
            key = (structure_key(fetches), fed)
        except UnknownStructureError:
            return None
        fetch_set: _FetchSet | None = fetch_sets.get(key)
        if fetch_set is None:
            fetch_sets.add(key, _FetchSet(copy_structure(fetches), None, tuple(feeds)))
            return None
        call = fetch_set.call
        if call is None:
            call = self._make(fetch_set.fetches, list(fetch_set.fed))
            fetch_sets.add(key, fetch_set._replace(call=call))
        if isinstance(call, FedCallable):
            arrays = call.arrays(feeds)
            return None if arrays is None else functools.partial(call.run, arrays)
        return None if call is _ORDINARY else call

    def _make(self, fetches: Any, fed: list[Any]) -> Any:
        if fed:
            return FedCallable.of(self, fetches, fed) or _ORDINARY
        # `run` accepts empty fetches; a callable does not.
        return _ORDINARY if is_empty(fetches) else self.make_callable(fetches)


class CallableSessionHook(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Turns every session that it gets into a `CallableSession`.

    It works with every session that has hooks, also after a recovery: in
    `MonitoredTrainingSession`, `SingularMonitoredSession` and `Estimator`. It acts in
    `after_create_session`, once for each session, on the thread of the loop. In
    `Model.fit` it has no effect.
    """

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Adopts the session."""
        CallableSession.adopt(session)


def training_session(hooks: Iterable[Any] | None = None, **config: Any) -> Any:
    """A `MonitoredTrainingSession` whose steps run through callables.

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
      errors.NotAGuestError: `hooks` has something that is no hook.
      Exception: all that `MonitoredTrainingSession` and the hooks raise.
    """
    hooks = kinds.hooks_only(hooks)
    return tf.compat.v1.train.MonitoredTrainingSession(
        hooks=[*hooks, CallableSessionHook()], **config
    )
