"""A session program as two calls, before and after the call of a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from hookbridge.adapters.live_session.program import SessionProgram
from hookbridge.adapters.live_session.resources import compiled


class SplitProgram:
    """The halves of a program that run before a step and after it."""

    def __init__(self, program: SessionProgram) -> None:
        self._program = program
        self._step_tensors = sorted(program.closure.step_tensors)
        self._names: list[str] = []
        self._before = compiled(self._build_before)
        self._after = compiled(self._build_after)

    def _build_before(self, feeds: Any) -> list[Any]:
        known = {
            n: v
            for n, v in self._program.build_before(feeds).items()
            if isinstance(v, tf.Tensor) and v.dtype != tf.resource
        }
        self._names = list(known)
        return list(known.values())

    def _build_after(self, known: Any, values: Any) -> list[Any]:
        everything = dict(zip(self._names, known, strict=True))
        return self._program.build_after(
            {**self._program.handles(), **everything},
            dict(zip(self._step_tensors, values, strict=True)),
        )

    @property
    def has_before(self) -> bool:
        """Whether anything runs before the step."""
        return bool(self._program.feeds or self._program.closure.before)

    @property
    def has_after(self) -> bool:
        """Whether anything runs after the step."""
        return bool(self._program.closure.after)

    def before(self, feeds: Sequence[Any]) -> list[Any]:
        """Runs the ops that do not depend on the step; returns `known` for `after`."""
        return list(self._before(list(feeds)))

    def after(self, known: Sequence[Any], values: Mapping[str, Any]) -> list[Any]:
        """Runs the ops that depend on the step; returns the fetched values."""
        of_step = [values[name] for name in self._step_tensors]
        return list(self._after(list(known), of_step))

    def known(self, known: Sequence[Any], values: Mapping[str, Any]) -> list[Any]:
        """The fetched values if nothing runs after the step; see `after`."""
        everything: dict[str, Any] = {f"{n}:0": v for n, v in values.items()}
        if known:
            everything.update(zip(self._names, known, strict=True))
        return [everything[t.name] for t in self._program.tensors]
