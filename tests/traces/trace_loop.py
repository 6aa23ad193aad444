"""The loop of the trace scenarios, over any host of `MonitoredTrainingSession`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import tensorflow as tf
from trace_events import Event, describe, describe_exception
from trace_hooks import Listener, Recorder
from trace_hosts import SessionHost

from hookbridge.ground import compat

v1 = tf.compat.v1

T = TypeVar("T")

Scenario = Callable[["Trace"], None]
SCENARIOS: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    """Files a scenario under its name."""
    SCENARIOS[function.__name__] = function
    return function


class Ops(NamedTuple):
    """The graph of most scenarios."""

    train_op: Any
    loss: Any


class Trace:
    """One run of one scenario in a host, with an empty directory for its files."""

    def __init__(self, host: SessionHost, root: Path) -> None:
        self.host, self.root = host, root
        self.log: list[Event] = []
        self._directories = 0

    def note(self, event: str, **more: Any) -> None:
        """Adds an event of the loop itself."""
        self.log.append({"e": event, **more})

    def recorder(self, name: str, **config: Any) -> Recorder:
        """A recording hook of this trace."""
        return Recorder(self.log, name, **config)

    def listener(self, name: str, **config: Any) -> Listener:
        """A recording checkpoint listener of this trace."""
        return Listener(self.log, name, **config)

    def directory(self) -> str:
        """A new directory."""
        self._directories += 1
        path = self.root / str(self._directories)
        path.mkdir()
        return str(path)

    def exception(self, error: BaseException) -> Event:
        return describe_exception(error, self.root)

    @contextlib.contextmanager
    def run(self) -> Iterator[None]:
        """The scenario's own graph; what escapes from it is an event."""
        with self.host.graph():
            try:
                yield
            except BaseException as e:
                self.note("SCENARIO_RAISED", **self.exception(e))
            finally:
                v1.summary.FileWriterCache.clear()

    def session(self, hooks: list[Any], **config: Any) -> Callable[[], Any]:
        """Makes a `MonitoredTrainingSession` with no hooks but `hooks`."""
        config = {
            "save_checkpoint_secs": None,
            "save_checkpoint_steps": None,
            "save_summaries_steps": None,
            "save_summaries_secs": None,
            "log_step_count_steps": 0,
            **config,
        }
        hooks = [*hooks, *self.host.hooks]
        return lambda: v1.train.MonitoredTrainingSession(hooks=hooks, **config)

    def train_graph(
        self, *, increment: int = 1, loss: Callable[[Any], Any] | None = None
    ) -> Ops:
        """A global step, a weight `w` that grows by 1, a loss of `2 * w`."""
        step = v1.train.get_or_create_global_step()
        compat.private("global_step_read")()
        w = v1.get_variable("w", shape=[], initializer=v1.zeros_initializer())
        value = loss(step) if loss else tf.identity(w * 2.0, name="loss")
        with tf.control_dependencies([value]):
            grown = v1.assign_add(w, 1.0)
        with tf.control_dependencies([grown]):
            return Ops(increment_global_step(increment), value)

    def data_graph(self, count: int) -> tuple[Any, Any]:
        """A pipeline of `count` elements: `(element, train_op)`."""
        data = tf.data.Dataset.range(count)
        element = v1.data.make_one_shot_iterator(data).get_next()
        v1.train.get_or_create_global_step()
        compat.private("global_step_read")()
        with tf.control_dependencies([element]):
            return element, increment_global_step()

    def late(self, build: Callable[[], T]) -> Callable[[], T]:
        """Builds ops when the host has its graph; returns a function to get them."""
        built = build()
        return lambda: built

    def tensor(self, tensor: Any) -> Any:
        """The tensor of the default graph, given that tensor or its name."""
        return v1.get_default_graph().as_graph_element(tensor)

    def checkpoint(self, upto: int) -> str:
        """A directory with the checkpoint of a run of `upto` steps."""
        directory = self.directory()
        with self.host.graph():
            op = self.train_graph().train_op
            make = self.session([], checkpoint_dir=directory, save_checkpoint_steps=1)
            with make() as monitored:
                for _ in range(upto):
                    monitored.run(op)
        return directory

    def drive_and_act(self, act: Callable[[Any], None], **options: Any) -> None:
        """Drives a training with one hook, which `act` gets after the second run."""
        op = self.train_graph().train_op
        hook = self.recorder("A")

        def body(monitored: Any, turn: int) -> Any:
            result = monitored.run(op)
            if turn == 2:
                act(hook)
            return result

        self.drive(self.session([hook]), op, body=body, **options)

    def drive(
        self,
        make: Callable[[], Any],
        fetch: Any,
        *,
        runs: int | None = None,
        use_with: bool = True,
        body: Callable[[Any, int], Any] | None = None,
        log_result: bool = False,
    ) -> Any:
        """The canonical loop; logs all that can be observed of its session.

        Without `runs`, its end is left to the hooks; `body` is one turn instead of
        `session.run(fetch)`; without `use_with` the session is closed by hand.
        """
        monitored: Any = None

        def turns() -> None:
            turn = 0
            # A scenario whose hooks fail to stop it must not hang.
            limit = 20 if runs is None else runs
            while not monitored.should_stop() and turn < limit:
                turn += 1
                self.note("RUN", i=turn)
                result = body(monitored, turn) if body else monitored.run(fetch)
                more = {"result": describe(result)} if log_result else {}
                stop = bool(monitored.should_stop())
                self.note("RAN", i=turn, should_stop=stop, **more)
            stop = bool(monitored.should_stop())
            self.note("LOOP_EXIT", i=turn, should_stop=stop)

        try:
            monitored = make()
            self.note("CREATED", should_stop=bool(monitored.should_stop()))
            if use_with:
                with monitored:
                    turns()
            else:
                try:
                    turns()
                finally:
                    self.note("CLOSE")
                    monitored.close()
            self.note("EXIT_OK")
        except BaseException as e:
            self.note("ESCAPED", **self.exception(e))
        if monitored is not None:
            self.note("AFTER", should_stop=bool(monitored.should_stop()))
        return monitored

    def train_with(
        self,
        *hooks: Any,
        loss: Callable[[Any], Any] | None = None,
        config: Mapping[str, Any] | None = None,
        **loop: Any,
    ) -> Any:
        """The canonical loop over a graph that trains."""
        op = self.train_graph(loss=loss).train_op
        return self.drive(self.session(list(hooks), **config or {}), op, **loop)


def increment_global_step(by: int = 1) -> Any:
    """The operation that adds to the global step.

    It runs after the shared read of the step: after a bare `assign_add`, hooks would
    read either value in the same run.
    """
    # The read is made outside any control_dependencies scope, or a hook that merely
    # reads the step would run those dependencies.
    with tf.control_dependencies(None):
        read = compat.private("global_step_read")()
    with tf.control_dependencies([read]):
        return tf.group(v1.assign_add(v1.train.get_or_create_global_step(), by))
