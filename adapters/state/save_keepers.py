"""Who keeps the state of callbacks beside a save that no saver of a graph makes."""

from __future__ import annotations

import abc
import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from hookbridge.adapters.state.write_order import WriteOrder
from hookbridge.ground.memory import Fact
from hookbridge.ground.protocols import Graph, Session


class Save(NamedTuple):
    """A save of a session, which is about to begin."""

    session: Session
    step: int
    prefix: str  # the path of the checkpoint without suffix
    write: Callable[[], Any]  # writes the checkpoint with the present values
    order: WriteOrder  # of the checkpoint and of the state beside it


class SaveKeeper(abc.ABC):
    """Keeps the state of callbacks beside the checkpoints of a session or a `fit`."""

    @abc.abstractmethod
    def save_session(self, save: Save) -> None:
        """Save a session with the state of callbacks."""


# A keeper lives as long as a run or a saver holds it.
_OF_GRAPH = Fact[weakref.ref[SaveKeeper]]("graph", "keeper of callbacks' state")


def keeps_for(graph: Graph, keeper: SaveKeeper) -> None:
    """From now on `keeper` keeps the state of the callbacks in a graph's sessions."""
    _OF_GRAPH.put(graph, weakref.ref(keeper))


def keeper_of_graph(graph: Graph) -> Any:
    """Return what keeps the state of callbacks in the sessions of a graph, or None."""
    reference = _OF_GRAPH.get(graph)
    return None if reference is None else reference()


def keepers_of(graph: Graph, listeners: Iterable[object]) -> list[SaveKeeper]:
    """Return all who keep state beside a save of a graph, in a session or in `fit`.

    Args:
      graph: that of the session.
      listeners: those of the hook that saves.
    """
    keepers = [item for item in listeners if isinstance(item, SaveKeeper)]
    of_graph = keeper_of_graph(graph)
    return keepers if of_graph is None else [of_graph, *keepers]
