"""Causes of a difference in how the same gradients move weights.

The rule of the reference's optimizer is found first. A cause is this rule with another
setting; it predicts how the port's own gradients move the port's weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from hookbridge.reference.causes.cause import (
    LEAST,
    Cause,
    is_near,
    rank,
    share_of,
)
from hookbridge.reference.causes.known_rule import UpdateRules, rules_of
from hookbridge.reference.causes.recorded_clipping import AS_RECORDED
from hookbridge.reference.causes.update_rules import Course, Rule
from hookbridge.reference.recordings.differences import Pairing


def update_causes(rules: UpdateRules) -> Iterator[Cause]:
    """Yield the causes in the update rule, each with what it explains."""
    bases = [rules.rule]
    if rules.rule.kind in ("adam", "rmsprop"):
        # A port may have another mistake, and PyTorch's place of epsilon.
        bases.append(replace(rules.rule, epsilon_last=True))
    if rules.rule.clip == AS_RECORDED and rules.rule.limit:
        # A port adds up rows that a batch has twice before it takes a norm.
        bases.append(replace(rules.rule, clip="norm"))
    for base in bases:
        yield from _clipping(rules, base)
        # What explains all by itself needs no second mistake.
        if base is rules.rule or rules.explained(base) < LEAST:
            yield from _settings(rules, base)
            yield from _decays(rules, base)
            yield from _rate(rules, base)
            yield from _other_rules(rules, base)


def _settings(rules: UpdateRules, base: Rule) -> Iterator[Cause]:
    """Yield another number, or another switch, of the same optimizer."""
    several = rules.updates.steps > 1

    def fitted(
        name: str, field: str, values: object, *, of_log: bool
    ) -> Iterator[Cause]:
        def make(value: float) -> Rule:
            number = math.exp(value) if of_log else value
            setting: Any = {field: 1 - number if field.startswith("beta") else number}
            return replace(base, **setting)

        value, part = rules.fitted(make, values)
        number = getattr(make(value), field)
        yield Cause(
            name,
            f"{name}: {_number(number)} in the port, {_number(getattr(base, field))} "
            "in the reference",
            part,
            1,
        )

    small = np.log(np.geomspace(1e-5, 0.9, 60))
    if base.kind == "adam":
        if several:
            yield from fitted("beta1", "beta1", small, of_log=True)
            yield from fitted("beta2", "beta2", small, of_log=True)
            yield Cause(
                "amsgrad",
                f"amsgrad is {'off' if base.amsgrad else 'on'} in the port only",
                rules.explained(replace(base, amsgrad=not base.amsgrad)),
            )
    elif base.kind == "sgd":
        if several:
            values = np.linspace(0.0, 1.0, 41)
            yield from fitted("momentum", "momentum", values, of_log=False)
        if base.momentum:
            yield from _kinds_of_momentum(rules, base)
    else:
        if base.kind == "rmsprop" and several:
            yield from fitted("decay", "beta2", small, of_log=True)
        yield from _first_squares(rules, base)


def _kinds_of_momentum(rules: UpdateRules, base: Rule) -> Iterator[Cause]:
    """Yield the rate within the momentum, and Nesterov's."""
    if np.ptp(rules.updates.port.rates):
        with_rate = replace(base, rate_in_momentum=True)
        text = (
            "the momentum of the port keeps the rate of each step, as Keras's SGD "
            "does; it differs while the rate changes"
        )
        yield Cause("rate in momentum", text, rules.explained(with_rate))
    who = "reference" if base.nesterov else "port"
    flipped = replace(base, nesterov=not base.nesterov)
    text = f"Nesterov's momentum is on in the {who} only"
    yield Cause("nesterov", text, rules.explained(flipped))


def _first_squares(rules: UpdateRules, base: Rule) -> Iterator[Cause]:
    """Yield another start of the squares of Adagrad and RMSProp."""

    def text(value: float) -> str:
        return (
            f"the initial accumulator: {_number(value)} in the port, "
            f"{_number(base.first_square)} in the reference"
        )

    for value in (0.0, 0.1, 1.0):
        if value != base.first_square:
            rule = replace(base, first_square=value)
            for epsilon in sorted({base.epsilon, 1e-10, 1e-7}):
                part = rules.explained(replace(rule, epsilon=epsilon))
                yield Cause("initial accumulator", text(value), part)
    values = np.log(np.geomspace(1e-6, 10, 60))
    best, part = rules.fitted(lambda v: replace(base, first_square=math.exp(v)), values)
    yield Cause("initial accumulator", text(math.exp(best)), part, 1)


def _clipping(rules: UpdateRules, base: Rule) -> Iterator[Cause]:
    """Yield no clipping, another kind of it, or another limit."""
    of_reference = _of_reference(rules)
    if base.clip:
        part = rules.explained(replace(base, clip="", limit=0.0))
        yield Cause("clipping", f"the port does not clip; {of_reference}", part)
    port = rules.updates.port
    ends: dict[Any, float] = {
        "global norm": float(port.wholes.max()),
        "norm": float(port.norms.max()),
        "value": float(np.abs(port.gradients).max(initial=0.0)),
    }
    for clip, end in ends.items():
        if end <= 0:
            continue

        def make(value: float, clip: Any = clip) -> Rule:
            return replace(base, clip=clip, limit=math.exp(value))

        # A limit above all norms would not be reached: it explains nothing.
        best, part = rules.fitted(make, np.log(np.geomspace(1e-4 * end, end, 80)))
        limit = math.exp(best)
        text = f"the port clips by {clip} {_number(limit)}; {of_reference}"
        # Adam takes no notice of a scale, but for epsilon: a limit is often as good as
        # another epsilon, and less likely.
        same = base.clip and clip != base.clip and is_near(limit, base.limit, 0.01)
        yield Cause("clipping", text, part, 0 if same else 2)


def _of_reference(rules: UpdateRules) -> str:
    """Return in words how the reference clips."""
    rule = rules.rule
    if not rule.clip:
        return "the reference does not clip in these steps"
    if rule.clip != AS_RECORDED:
        return f"the reference clips by {rule.clip} {_number(rule.limit)}"
    if rules.of_rows:
        return (
            "in the norm by which the reference clips, a row that a batch has twice "
            "counts twice, as in TensorFlow 1 for an embedding"
        )
    return "the reference makes gradients smaller in a way that is not known"


def _decays(rules: UpdateRules, base: Rule) -> Iterator[Cause]:
    """Yield weight decay in one of the two only, of all weights or of some."""
    port = rules.updates.port
    left = port.moves - base.moves(port)
    for text, amount in (
        ("times the rate", port.rates[:, None] * port.weights),
        ("not times the rate", port.weights),
    ):
        coefficients = _of_each_variable(left, amount, rules)
        is_decayed = np.abs(coefficients) > 0.05 * np.abs(coefficients).max()
        chosen = coefficients[is_decayed]
        if not chosen.size or np.ptp(chosen) > 0.02 * np.abs(chosen).max():
            continue
        common = float(np.median(chosen))
        residual = left - amount * np.where(is_decayed, common, 0.0)[port.owner]
        part = rules.explained_but(residual)
        who = "port" if common < 0 else "reference"
        names = [
            n for n, is_in in zip(rules.updates.names, is_decayed, strict=True) if is_in
        ]
        weights = _names_in_words(names, rules.updates.names)
        yield Cause(
            "weight decay",
            f"weight decay in the optimizer of the {who} only: each step takes "
            f"{_number(abs(common))} of {weights}, {text}",
            part,
            1,
        )
    for sign, who in ((1, "port"), (-1, "reference")):

        def make(value: float, sign: int = sign) -> Rule:
            return replace(base, l2=sign * math.exp(value))

        best, part = rules.fitted(make, np.log(np.geomspace(1e-6, 1, 60)))
        text = (
            f"weight decay of {_number(math.exp(best))} that the optimizer of the "
            f"{who} adds to the gradients, as PyTorch's `weight_decay` does"
        )
        yield Cause("weight decay", text, part, 1)


def decay_instead(pairing: Pairing) -> Cause | None:
    """Return weight decay in the port's optimizer, in the place of l2 in its loss."""
    rules = rules_of(pairing, 1)
    if rules is None or not rules.updates.own_gradients:
        return None
    causes = rank(_decays(rules, rules.rule))
    return causes[0] if causes else None


def _of_each_variable(left: Any, amount: Any, rules: UpdateRules) -> Any:
    """Return how much of `amount` is in the rest of each variable, by least squares."""
    owner, clear = rules.updates.port.owner, rules.updates.clear
    elements = [(owner == n) & clear for n in range(len(rules.updates.names))]
    return np.array([share_of(amount[:, part], left[:, part]) for part in elements])


def _rate(rules: UpdateRules, base: Rule) -> Iterator[Cause]:
    """Yield another rate, or a schedule that is off by one step."""
    port = rules.updates.port
    scaled = rules.updates.scaled
    factor = share_of(scaled(base.moves(port)), scaled(port.moves))
    if factor > 0 and not is_near(factor, 1.0, 5e-3):
        part = rules.explained(replace(base, factor=factor))
        text = f"all weights move {_number(factor)} times as far: the rate"
        yield Cause("rate", text, part, 1)
    if not np.ptp(port.rates):
        return
    ahead = np.append(port.rates[1:], rules.updates.next_rate)
    behind = np.append(port.rates[:1], port.rates[:-1])
    for rates, text in ((ahead, "ahead"), (behind, "behind")):
        shifted: Course = replace(port, rates=rates)
        part = rules.explained_but(port.moves - base.moves(shifted))
        yield Cause("schedule", f"the port's schedule is one step {text}", part)


def _other_rules(rules: UpdateRules, base: Rule) -> Iterator[Cause]:
    """Yield another optimizer."""
    optimizers = [
        ("Adam", Rule("adam", epsilon=1e-8)),
        ("RMSProp", Rule("rmsprop", beta2=0.9, first_square=1.0, epsilon=1e-10)),
        ("RMSProp", Rule("rmsprop", beta2=0.99, epsilon=1e-8, epsilon_last=True)),
        ("Adagrad", Rule("adagrad", first_square=0.1)),
        ("Adagrad", Rule("adagrad", epsilon=1e-10)),
        ("gradient descent", Rule("sgd")),
        ("gradient descent with a momentum of 0.9", Rule("sgd", momentum=0.9)),
    ]
    for text, rule in optimizers:
        if rule.kind != rules.rule.kind:
            part = rules.explained(replace(rule, clip=base.clip, limit=base.limit))
            yield Cause("optimizer", f"the port's optimizer is {text}", part)


def _number(value: float) -> str:
    return f"{value:.3g}"


def _names_in_words(names: list[str], every: list[str]) -> str:
    if len(names) == len(every):
        return "every weight"
    return ", ".join(f"`{name}`" for name in names)
