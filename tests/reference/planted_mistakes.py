"""The mistakes that are planted in the ports, and the cause that has to be named."""

from __future__ import annotations

from typing import Any, NamedTuple

from real_ports import KERNELS, RIGHT


class Mistake(NamedTuple):
    """A mistake of a port.

    Attributes:
      program: the program.
      text: the mistake in words, for the table.
      cause: the name of the cause that is to come first.
      fields: the fields of the port that make it.
    """

    program: str
    text: str
    cause: str
    fields: dict[str, Any]


def _options(program: str, **options: Any) -> dict[str, Any]:
    return {"options": RIGHT[program].options | options}


def _l2(**amounts: float) -> dict[str, Any]:
    return {"l2": RIGHT["policy"].l2 | amounts}


def _ahead(program: str) -> dict[str, Any]:
    rate = RIGHT[program].rate
    return {"rate": lambda n: rate(n + 1)}


BIASES = ("conv/bias", "policy/conv/bias", "policy/dense/bias", "value/dense/bias")
MISTAKES = [
    Mistake("autoencoder", "sum over all", "sum for mean", {"factor": "all"}),
    Mistake("autoencoder", "sum over pixels", "sum for mean", {"factor": "examples"}),
    Mistake("autoencoder", "untied weights", "untied weights", {"tied": False}),
    Mistake("autoencoder", "padding of stride 2", "padding", {"pad_before": 1}),
    Mistake("autoencoder", "slope 0.01 for 0.2", "slope", {"slope": 0.01}),
    Mistake(
        "autoencoder",
        "Adam's epsilon 1e-4",
        "epsilon",
        _options("autoencoder", epsilon=1e-4),
    ),
    Mistake(
        "autoencoder",
        "beta2 0.999 for 0.9",
        "beta2",
        _options("autoencoder", beta2=0.999),
    ),
    Mistake("autoencoder", "amsgrad", "amsgrad", _options("autoencoder", amsgrad=True)),
    Mistake("autoencoder", "schedule a step ahead", "schedule", _ahead("autoencoder")),
    Mistake("policy", "flattened NCHW", "flatten", {"channels_first": True}),
    Mistake("policy", "L2 of one left out", "l2", _l2(**{"policy/dense/kernel": 0.0})),
    Mistake("policy", "L2 twice as strong", "l2", {"l2": dict.fromkeys(KERNELS, 0.02)}),
    Mistake("policy", "L2 of biases too", "l2", _l2(**dict.fromkeys(BIASES, 0.01))),
    Mistake("policy", "L2 of biases alone", "l2", {"l2": dict.fromkeys(BIASES, 0.01)}),
    Mistake(
        "policy",
        "weight decay for L2",
        "weight decay for l2",
        {"l2": {}, "decay": dict.fromkeys(KERNELS, 0.01)},
    ),
    Mistake("policy", "Nesterov", "nesterov", _options("policy", nesterov=True)),
    Mistake("policy", "momentum 0.8", "momentum", _options("policy", momentum=0.8)),
    Mistake(
        "policy",
        "schedule a step ahead, rates not recorded",
        "schedule",
        _ahead("policy") | {"records_rate": False},
    ),
    Mistake("policy", "sum, with the same L2", "sum for mean", {"factor": "all"}),
    Mistake("lstm", "gates i, f, g, o", "gate order", {"gates": "ifjo"}),
    Mistake("lstm", "no forget bias", "forget bias", {"forget_bias": 0.0}),
    Mistake("lstm", "mask of lengths", "mask", {"masked": False}),
    Mistake("lstm", "clipped each by its norm", "clipping", {"clip": ("norm", 0.15)}),
    Mistake("lstm", "clipped by value", "clipping", {"clip": ("value", 0.03)}),
    Mistake("lstm", "not clipped", "clipping", {"clip": ("", 0.0)}),
    Mistake(
        "lstm", "limit of 0.35 for 0.15", "clipping", {"clip": ("global norm", 0.35)}
    ),
    Mistake("lstm", "label smoothing", "label smoothing", {"smoothing": 0.1}),
    Mistake(
        "lstm",
        "no staircase",
        "staircase",
        {"rate": lambda n: 0.05 * 0.5 ** (n / 3)},
    ),
    Mistake(
        "normalized",
        "Adagrad begins with 0",
        "initial accumulator",
        _options("normalized", initial=0.0),
    ),
    Mistake("normalized", "momentum 0.99 for 0.9", "momentum", {"momentum": 0.99}),
    Mistake("normalized", "PyTorch's momentum", "momentum", {"momentum": 0.1}),
    Mistake("normalized", "unbiased variance", "unbiased variance", {"unbiased": True}),
    Mistake(
        "normalized",
        "epsilon 1e-5 for 1e-3",
        "epsilon of a normalization",
        {"epsilon": 1e-5},
    ),
    Mistake("normalized", "in inference mode", "mode", {"trains": False}),
    Mistake("normalized", "not updated", "moving averages", {"momentum": 1.0}),
    Mistake(
        "normalized",
        "weight decay by the optimizer",
        "weight decay",
        _options("normalized", l2=0.01),
    ),
    Mistake("normalized", "labels shifted", "shifted", {"shifted": True}),
]
