"""The update rules of optimizers in NumPy, to predict how weights move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Kind = Literal["sgd", "adam", "adagrad", "rmsprop"]
Clip = Literal["", "global norm", "norm", "value", "as recorded"]


@dataclass(frozen=True)
class Course:
    """What a run had in its first steps; arrays are `[step, element]`.

    All variables are one vector: `owner` has the number of each element's variable.
    `norms` are those of whole gradients, `[step, variable]`, also where the vector has
    only some of their elements, and `wholes` those of all gradients of a step together.
    `scales` are by how much the reference made each smaller.
    """

    gradients: Any
    weights: Any  # before each step
    moves: Any
    rates: Any
    norms: Any
    wholes: Any
    scales: Any
    owner: Any


@dataclass(frozen=True)
class Rule:
    """An optimizer with its settings.

    Attributes:
      kind: which optimizer.
      beta1: how fast Adam's mean of gradients forgets.
      beta2: how fast the mean of their squares forgets, also RMSProp's.
      epsilon: the number that keeps a division from being one by 0.
      epsilon_last: whether epsilon is added last: by Adam after the correction of the
        bias, by RMSProp after the root. PyTorch does both, TensorFlow 1 neither.
      amsgrad: whether Adam takes the largest mean of squares so far.
      momentum: of gradient descent.
      nesterov: whether the momentum looks ahead.
      rate_in_momentum: whether a step's rate stays in the momentum, as in Keras.
      first_square: what Adagrad and RMSProp begin with.
      clip: how gradients are clipped, and by which `limit`.
      limit: the limit of the clipping.
      decay: weight decay that is not part of the gradient, times the rate.
      l2: weight decay that the optimizer adds to the gradient.
      factor: what the recorded rate is multiplied by.
    """

    kind: Kind
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 0.0
    epsilon_last: bool = False
    amsgrad: bool = False
    momentum: float = 0.0
    nesterov: bool = False
    rate_in_momentum: bool = False
    first_square: float = 0.0
    clip: Clip = ""
    limit: float = 0.0
    decay: float = 0.0
    l2: float = 0.0
    factor: float = 1.0

    def moves(self, course: Course) -> Any:
        """Predict how each element moves in each step."""
        gradients = clipped(self, course) + self.l2 * course.weights
        rates = self.factor * course.rates[:, None]
        move = {"sgd": _sgd, "adam": _adam, "adagrad": _adagrad, "rmsprop": _rmsprop}
        if self.rate_in_momentum:
            steps = _sgd(self, gradients * rates) / rates
        else:
            steps = move[self.kind](self, gradients)
        return -rates * (steps + self.decay * course.weights)


def clipped(rule: Rule, course: Course) -> Any:
    """Return the gradients as the optimizer gets them."""
    if not rule.clip:
        return course.gradients
    if rule.clip == "as recorded":
        return course.gradients * course.scales[:, course.owner]
    if rule.clip == "value":
        return np.clip(course.gradients, -rule.limit, rule.limit)
    norms = course.norms
    if rule.clip == "global norm":
        norms = np.broadcast_to(course.wholes[:, None], norms.shape)
    scale = rule.limit / np.maximum(norms, rule.limit)
    return course.gradients * scale[:, course.owner]


def _sgd(rule: Rule, gradients: Any) -> Any:
    mean, steps = np.zeros_like(gradients[0]), []
    for gradient in gradients:
        mean = rule.momentum * mean + gradient
        steps.append(gradient + rule.momentum * mean if rule.nesterov else mean)
    return np.stack(steps)


def _adam(rule: Rule, gradients: Any) -> Any:
    """Return the moves of Adam for a rate of 1, step by step."""
    mean = square = largest = np.zeros_like(gradients[0])
    steps = []
    for count, gradient in enumerate(gradients, 1):
        mean = rule.beta1 * mean + (1 - rule.beta1) * gradient
        square = rule.beta2 * square + (1 - rule.beta2) * gradient**2
        largest = np.maximum(largest, square) if rule.amsgrad else square
        root = np.sqrt(1 - rule.beta2**count)
        below = np.sqrt(largest) + rule.epsilon * (root if rule.epsilon_last else 1.0)
        steps.append(_divide(mean * root / (1 - rule.beta1**count), below))
    return np.stack(steps)


def _adagrad(rule: Rule, gradients: Any) -> Any:
    squares = rule.first_square + np.cumsum(gradients**2, axis=0)
    return _divide(gradients, np.sqrt(squares) + rule.epsilon)


def _rmsprop(rule: Rule, gradients: Any) -> Any:
    square = np.full_like(gradients[0], rule.first_square)
    mean, steps = np.zeros_like(square), []
    for gradient in gradients:
        square = rule.beta2 * square + (1 - rule.beta2) * gradient**2
        below = np.sqrt(square + (0.0 if rule.epsilon_last else rule.epsilon))
        below = below + (rule.epsilon if rule.epsilon_last else 0.0)
        mean = rule.momentum * mean + _divide(gradient, below)
        steps.append(mean)
    return np.stack(steps)


def _divide(above: Any, below: Any) -> Any:
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def declared_rules(settings: Mapping[str, Any], slots: Mapping[str, Any]) -> list[Rule]:
    """Return the rules that a recorded optimizer of TensorFlow or Keras may be.

    Args:
      settings: the class of the optimizer and its numbers.
      slots: the recorded variables of the optimizer before the first step, by name.

    Returns:
      The rules; none for an optimizer that has no rule here.
    """
    name = str(settings.get("class", "")).lower().removesuffix("optimizer")

    def number(*names: str, default: float) -> float:
        return next(
            (float(settings[n]) for n in names if _is_number(settings.get(n))), default
        )

    epsilon = number("epsilon", "eps", default=0.0)
    decay = number("weight_decay", default=0.0)
    if name in ("sgd", "gradientdescent", "momentum"):
        momentum = number("momentum", default=0.0)
        plain = Rule("sgd", momentum=momentum, decay=decay)
        return [plain, Rule("sgd", momentum=momentum, nesterov=True, decay=decay)]
    if name in ("adam", "adamw"):
        return [
            Rule(
                "adam",
                beta1=number("beta_1", "beta1", default=0.9),
                beta2=number("beta_2", "beta2", default=0.999),
                epsilon=epsilon,
                amsgrad=amsgrad,
                decay=decay,
            )
            for amsgrad in (False, True)
        ]
    first = next((v for v in slots.values() if v.size and np.ptp(v) == 0), None)
    if name == "adagrad":
        begin = number("initial_accumulator_value", default=0.1)
        begin = begin if first is None else float(first.flat[0])
        return [Rule("adagrad", first_square=begin, epsilon=epsilon)]
    if name == "rmsprop":
        begin = float(max((v.flat[0] for v in slots.values() if v.size), default=0.0))
        return [
            Rule(
                "rmsprop",
                beta2=number("rho", "decay", default=0.9),
                momentum=number("momentum", default=0.0),
                epsilon=epsilon,
                first_square=begin,
            )
        ]
    return []


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
