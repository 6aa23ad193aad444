"""A live graph as the files know it that it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from hookbridge.adapters.live_session.step_names import StepTensor
from hookbridge.ground.protocols import Context, Graph


class GrowingGraph(Graph, Protocol):
    """A graph that has a model's variables and step; `LiveGraph` is one."""

    variables: Any  # its `GraphVariables`
    step_tensors: Mapping[str, StepTensor]
    step_op: Any

    def growing(self) -> Context:
        """Return a context for adding ops, also if the graph is final."""
