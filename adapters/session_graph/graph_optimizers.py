"""The optimizers of a graph: class, name and hyperparameters, from their update ops."""

from __future__ import annotations

import re
from typing import NamedTuple

from hookbridge.adapters.session_graph import learning_rate
from hookbridge.adapters.session_graph.learning_rate import GraphNumber, LearningRate

# Kinds of update ops whose optimizer has another name.
_CLASSES = {
    "AdaMax": "Adamax",
    "AdamWithAmsgrad": "Adam",
    "CenteredRMSProp": "RMSProp",
    "FtrlV2": "Ftrl",
    "AdagradV2": "Adagrad",
    "KerasMomentum": "SGD",
}
_KERAS_CLASSES = {"GradientDescent": "SGD", "RMSProp": "RMSprop"}
# Input of update ops -> the optimizer's argument, in `tf.compat.v1.train` and in Keras.
_ARGUMENTS = {
    "beta1": ("beta1", "beta_1"),
    "beta2": ("beta2", "beta_2"),
    "epsilon": ("epsilon", "epsilon"),
    "momentum": ("momentum", "momentum"),
    "rho": ("decay", "rho"),
    "l1": ("l1_regularization_strength", "l1_regularization_strength"),
    "l2": ("l2_regularization_strength", "l2_regularization_strength"),
    "lr_power": ("learning_rate_power", "learning_rate_power"),
}


class OptimizerFacts(NamedTuple):
    """What the graph tells of one optimizer."""

    # Such as `"AdamOptimizer"`; `"Optimizer"` if the graph has no op of it.
    class_name: str = "Optimizer"
    name: str = "Optimizer"  # the name that it was given or has by default
    # `{argument: where its value is read}`, without the learning rate.
    hyperparameters: dict[str, GraphNumber] = {}  # noqa: RUF012 - never changed


def optimizer_of(rate: LearningRate) -> OptimizerFacts:
    """Return the optimizer that a learning rate belongs to."""
    update = rate.update
    if update is None:
        return OptimizerFacts()
    kind = re.sub(r"^(Resource)?(Sparse)?Apply", "", update.type)
    scopes = update.name.split("/")
    depth = next((i for i, s in enumerate(scopes) if re.match("update(_|$)", s)), 0)
    # A Keras optimizer opens its scope twice: "SGD/SGD/update/...".
    is_keras = depth > 1 and scopes[depth - 1].startswith(scopes[depth - 2])
    short = _CLASSES.get(kind, kind)
    class_name = _KERAS_CLASSES.get(short, short) if is_keras else f"{short}Optimizer"
    values = {}
    for argument, tensor in zip(update.op_def.input_arg, update.inputs, strict=False):
        names = _ARGUMENTS.get(argument.name)
        if names is not None and tensor.shape.rank == 0:
            name = names[1] if is_keras else names[0]
            values[name] = learning_rate.number_at(tensor, update.graph)
    return OptimizerFacts(class_name, scopes[depth - 1] if depth else short, values)
