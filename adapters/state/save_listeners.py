"""Who is asked to make a save that no saver of a graph makes, with its state."""

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


class SaveListener(abc.ABC):
    """Makes the saves of a session or a `fit`, with the state of callbacks."""

    @abc.abstractmethod
    def save_session(self, save: Save) -> None:
        """Save a session, and the state of callbacks beside it."""


# A listener lives as long as a run or a saver holds it.
_OF_GRAPH = Fact[weakref.ref[SaveListener]]("graph", "listener to its saves")


def listen_to_saves(graph: Graph, listener: SaveListener) -> None:
    """Make `listener` the one who saves the sessions of a graph from now on."""
    _OF_GRAPH.put(graph, weakref.ref(listener))


def listener_of_graph(graph: Graph) -> Any:
    """Return who saves the sessions of a graph with the state of callbacks, or None."""
    reference = _OF_GRAPH.get(graph)
    return None if reference is None else reference()


def listeners_of_save(graph: Graph, listeners: Iterable[object]) -> list[SaveListener]:
    """Return all who save a graph with a state, in a session or in `fit`.

    Args:
      graph: that of the session.
      listeners: those of the hook that saves.
    """
    of_hook = [item for item in listeners if isinstance(item, SaveListener)]
    of_graph = listener_of_graph(graph)
    return of_hook if of_graph is None else [of_graph, *of_hook]
