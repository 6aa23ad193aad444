"""A run of the callbacks of one `as_hooks` call, in one session."""

from __future__ import annotations

import abc
import contextlib
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hookbridge.adapters.guests import roles
from hookbridge.adapters.guests.guest_record import Guest
from hookbridge.adapters.live_model.clone import Clone
from hookbridge.adapters.live_model.counters import LiveCounters
from hookbridge.adapters.live_model.link import Link
from hookbridge.adapters.live_model.model import LiveModel
from hookbridge.adapters.live_model.optimizer import live_optimizer
from hookbridge.adapters.live_model.rates import LiveRates
from hookbridge.adapters.live_model.weights import LiveWeights
from hookbridge.adapters.session_graph.learning_rate import LearningRate
from hookbridge.adapters.session_graph.session_variables import model_variables
from hookbridge.adapters.session_loop.shared.audience import Audience
from hookbridge.adapters.session_loop.shared.borrowed import BorrowedCallbacks
from hookbridge.adapters.session_loop.shared.options import HookOptions
from hookbridge.ground.processes.tf_config import task_of
from hookbridge.ground.protocols import (
    Coordinator,
    Graph,
    RunContext,
    RunValues,
    Session,
)


class CallbackRun(abc.ABC):
    """The state of one run: made in the first `begin` on a graph, for one session."""

    # Whether it may run within a training, with callbacks of that training.
    borrows = False

    def __init__(self, config: HookOptions, graph: Graph) -> None:
        self.config = config
        self.graph = graph
        self.members: list[Any] = []  # the hooks that take part, in their order
        self.audience: Audience = Audience(lambda: self.session)
        self.borrowed: BorrowedCallbacks = BorrowedCallbacks()
        self.session: Any = None  # the raw session, or None before there is one
        self.step: int = 0  # the global step as far as it is known
        self.started: bool = False
        self.finished: bool = False
        self.asked_to_stop = False  # `stop_training` was set in an evaluation
        self.results: Any = None  # what the last step has fetched for callbacks
        # Which callback has set `stop_training`, or why the run ends.
        self.stop_reason: str | None = None

    def join(self, member: Any, *, takes_part: bool) -> None:
        """Take a member into the run, in its `begin`.

        Args:
          member: the hook of a callback.
          takes_part: whether the role of the callback lets it run here.
        """
        self.members.append(member)
        if not takes_part:
            return
        self.check(member.record)
        if self.borrows:
            self.borrowed.add(member.called)
        self.audience.add(member, self.model)
        self.model.live_link.push()  # refuses what cannot wait for the session

    def check(self, guest: Guest) -> None:  # noqa: B027 - most can carry all
        """Refuse a callback that this run cannot carry."""

    def enter(self, member: object, session: Session, coord: Coordinator) -> None:
        """Give a member the new session; after the last one, begin or go on with it."""
        self.session = session
        audience = self.audience
        if member is self.members[0] and not audience.calls:
            roles.warn_of_own_server(session, [m.record for m in self.members])
            audience.set_params(self.config)
            audience.add_history(self.model, self.config)
            self.borrowed.note_changes()
        if member is self.members[-1]:
            if not audience.calls:
                audience.collect_calls(self.config.flavours)
            self.model.live_link.push()  # what `set_model` and `set_params` set
            self.start_or_resume(coord)

    def before_and_after_run_of(
        self, member: object
    ) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """Return a member's `before_run` and `after_run` of each run of the session."""
        # The first member acts for all members before the run, the last one after it.
        is_first, is_last = member is self.members[0], member is self.members[-1]

        def before_run(run_context: RunContext) -> Any:
            return self.before_session_run(run_context) if is_first else None

        def after_run(run_context: RunContext, run_values: RunValues) -> None:
            if is_first:
                self.results = run_values.results
            if is_last:
                self.after_session_run(run_context)

        return before_run, after_run

    @abc.abstractmethod
    def start_or_resume(self, coord: Coordinator) -> None:
        """Begin in a session that all members have, or go on in it after a recovery."""

    @abc.abstractmethod
    def before_session_run(self, run_context: RunContext) -> Any:
        """Act before a run of the session, in the first member's `before_run`.

        Returns its `SessionRunArgs`, or None.
        """

    @abc.abstractmethod
    def after_session_run(self, run_context: RunContext) -> None:
        """Act after a run of the session, in the last member's `after_run`."""

    def leave(self, member: object, session: Session) -> None:
        """Let a member leave, in its `end`; after the last one, finish the run."""
        self.session = session
        if member is self.members[-1]:
            self.finish()
            self.finished = True
            self.model.live_link.end_run()
            self.borrowed.give_back()

    def stop_from_within(self) -> None:
        """End this run, for an evaluation within it."""
        self.model.stop_training = True

    def reset_metrics(self) -> None:  # noqa: B027
        """Begin new running means with the next step; a prediction has none."""

    @abc.abstractmethod
    def finish(self) -> None:
        """Note that the session is about to close after a clean run."""

    def deliver(self, event: str, *args: Any) -> None:
        """Deliver an event to all callbacks; their changes go into the session."""
        if event in self.audience.heard:
            self.audience.deliver(self.model.live_link, event, args)

    def note_stop(self) -> None:
        """Note that a callback sets `stop_training`: the one that is called now."""
        name = self.audience.who_is_called()
        if name is not None:
            self.stop_reason = f"`{name}` asked for a stop"

    @contextlib.contextmanager
    def starting(self) -> Iterator[None]:
        """Begin the run in a context; if that fails, the next session begins it again.

        Callbacks that come after a lost session had no event of the beginning yet.
        """
        self.started = True
        try:
            yield
        except BaseException:
            self.started = False
            raise

    def validates_here(self) -> bool:
        """Return whether a validation in mid-training runs in this process."""
        # It does not run on a worker, unless a callback there has the role "all" or
        # "worker": such a callback gets the results on every worker.
        return task_of() != "worker" or self.audience.has_role("all", "worker")

    def make_model(
        self,
        metrics: list[str],
        rates: list[LearningRate],
        evaluate: Callable[[], Mapping[str, float]] | None,
    ) -> None:
        """Build the model that the callbacks of this run are given."""
        source, flavours = self.config.keras_model(self.graph), self.config.flavours

        def session() -> Any:
            return self.session

        def step() -> int:
            return self.step

        clone = None
        if source is None:
            weights = LiveWeights(*model_variables(self.graph), session)
        else:
            trained, frozen = source.trainable_weights, source.non_trainable_weights
            weights = LiveWeights(trained, frozen, session, source.weights)
            clone = Clone(source, weights)
        live = LiveRates(rates, session, None if "keras3" in flavours else step)
        optimizer = live_optimizer(live.each, step, flavours)
        counters = LiveCounters(step, flavours)
        link = Link(weights, optimizer, live, counters, clone, weakref.ref(self))
        self.model: LiveModel = LiveModel(
            link,
            metrics=metrics,
            graph=self.graph,
            evaluate=evaluate,
            backups=self.config.backups,
        )
        self.push_assigned: Callable[[], None] = link.push_assigned
