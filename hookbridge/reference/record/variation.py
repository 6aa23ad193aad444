"""One mistake of porting that the copy of a graph can be tried with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Values = dict[str, Any]
# Changes the nodes of a copy.
Edit = Callable[[Any], None]


@dataclass(frozen=True)
class Variation:
    """One mistake that a port may have.

    Attributes:
      name: what kind of mistake it is.
      text: the mistake in a sentence.
      edit: changes nodes; None if none has to be changed.
      values: what tensors are, by their names: of the batch, or constants.
      weights: what variables are, by their names.
      gradients: which tensors are a variable's gradient.
    """

    name: str
    text: str
    edit: Edit | None = None
    values: Values = field(default_factory=dict)
    weights: Values = field(default_factory=dict)
    gradients: dict[str, list[str]] = field(default_factory=dict)
