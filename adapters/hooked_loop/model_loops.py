"""Who has the loops of a model: a run, or a loop that is started inside of it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Protocol

from hookbridge import errors
from hookbridge.adapters.hooked_loop.host import LoopHost
from hookbridge.adapters.hooked_loop.modes import STARTERS, is_running
from hookbridge.ground import compat
from hookbridge.ground.memory import Fact
from hookbridge.ground.patching import Patches, temporarily
from hookbridge.ground.protocols import AnyFunction, Context, Hook, KerasModel


class LoopRun(Protocol):
    """A run as its model's loops know it; `HookedRun` is one."""

    model: KerasModel
    mode: str | None
    is_over: bool
    host: LoopHost

    def leave(self) -> None:
        """Note that the run is over."""


# The innermost of the nested runs that have the loops, pending or going on.
_INNERMOST = Fact[Any]("model", "run")
# The runs that wait for a loop inside them.
_SUSPENDED = Fact[list[Any]]("model", "runs that wait")


def innermost(model: KerasModel) -> Any:
    """Return the run that has the model's loops, or None."""
    return _INNERMOST.get(model)


def suspended() -> tuple[Any, ...]:
    """Return the runs that wait for a loop inside them, of whatever models."""
    return tuple(run for runs in _SUSPENDED.values() for run in runs)


def is_in_suspended_run(hook: Hook) -> bool:
    """Return whether a run that waits for a loop inside it has the hook."""
    return any(hook is member for run in suspended() for member in run.hooks)


def is_in_another_thread(model: KerasModel) -> bool:
    """Return whether hooks are in a loop of the model in another thread."""
    run = innermost(model)
    return run is not None and run.loops.is_elsewhere()


def note_stop_of(model: KerasModel) -> None:
    """Note that a hook elsewhere ends the training of a model after this step."""
    run = innermost(model)
    if run is not None:
        run.note_stop()


class ModelLoops:
    """The loops of a model, which a run has until it is over.

    A loop of the model that starts inside of the run, such as the validation of a
    callback, may have hooks too: the run leaves the model to it and waits. One that
    starts in another thread runs beside it.
    """

    def __init__(self, run: LoopRun) -> None:
        self._run = run
        self._model = model = run.model
        self._thread = threading.get_ident()
        self._is_in_loop = is_running(model, self._thread)
        # The method that makes a step of a loop that is not Keras's, as it begins.
        self._stepping = ""
        self._is_making_step = False
        self._starters = Patches(
            model, {n: self._starter(n) for n in STARTERS if hasattr(model, n)}
        )

    def take(self) -> None:
        """Give the loops to the run, and install its host."""
        _INNERMOST.put(self._model, self._run)
        self._run.host.step_maker.install()
        self._starters.install()

    def note_begin(self) -> None:
        """Note that the native loop of the run begins."""
        self._thread = threading.get_ident()
        self._is_in_loop = is_running(self._model, self._thread)

    def is_elsewhere(self) -> bool:
        """Return whether the native loop of the run goes on in another thread."""
        is_here = threading.get_ident() == self._thread
        return (
            self._is_in_loop and not is_here and is_running(self._model, self._thread)
        )

    def give_back(self) -> None:
        """Give the model its own methods again: the run is over."""
        self._starters.remove()
        self._run.host.leave()
        if _INNERMOST.get(self._model) is self._run:
            _INNERMOST.pop(self._model)

    def making_step(self) -> Context:
        """Let the model's own loops be the step, not loops inside, in a context."""
        return temporarily(self, _is_making_step=True)

    def _starter(self, name: str) -> AnyFunction:
        """Return a replacement for a model method that starts a loop or a step."""
        run, model, original = self._run, self._model, getattr(self._model, name)

        def start(*args: object, **kwargs: object) -> Any:
            if self.is_elsewhere():
                self._check_beside(name)
                return original(*args, **kwargs)
            runs = is_running(model, threading.get_ident())
            if self._is_in_loop and not runs:
                # An exception from elsewhere ended the loop; nobody called `leave`.
                run.leave()
            # In a v1 graph, a loop over a generator predicts by `predict_on_batch`.
            if run.mode is None and not runs:
                self._stepping = name
            is_own = (self._stepping == name and not runs) or compat.is_called_from(
                "graph_fit_generator"
            )
            if run.is_over or self._is_making_step or is_own:
                return original(*args, **kwargs)
            with self._left_to_another():
                return original(*args, **kwargs)

        return start

    def _check_beside(self, name: str) -> None:
        """Refuse a loop of another thread that would make the steps of the run."""
        if STARTERS[name] != self._run.mode:
            return
        raise errors.RefusedError(
            f"`{name}` of the model `{self._model.name}` was called in a thread, while "
            f"another thread runs hooks with the same model. `{name}` would replace "
            f"that loop's step (`{self._run.mode}_function`). Call `{name}` in a "
            "callback of that loop, without a thread, or use a copy of the model "
            "(`clone_model`).",
            see="live session",
        )

    @contextlib.contextmanager
    def _left_to_another(self) -> Iterator[None]:
        """Leave the model to a loop inside of the run, which may have hooks too."""
        run, model = self._run, self._model
        run.host.suspend()
        self._starters.remove()
        _INNERMOST.pop(model)
        waiting = _SUSPENDED.get_or_put(model, list)
        waiting.append(run)
        try:
            yield
        finally:
            waiting.remove(run)
            inner = _INNERMOST.get(model)
            if inner is not None:
                inner.leave()
            if not run.is_over:
                _INNERMOST.put(model, run)
                self._starters.install()
                run.host.resume()
