"""The optimizers of a Keras model: what all families of optimizers are asked.

The families are Keras 3, Keras 2, the module `legacy` of Keras 2, and optimizers of
TensorFlow 1 that Keras wraps. Each may be inside an optimizer that scales the loss.
"""

from __future__ import annotations

import contextlib
from typing import Any

import tensorflow as tf

from hookbridge.adapters.guests.kinds import keras_behind
from hookbridge.adapters.keras_model.v1_optimizers import make_slots, v1_inside
from hookbridge.ground import patching
from hookbridge.ground.protocols import KerasModel, Optimizer

# What Keras 2 computes in each step.
_COMPUTED = ("_current_learning_rate",)


def tf_variable(variable: Any) -> Any:
    """Return the `tf.Variable` of a Keras 3 variable; other objects as they are."""
    # A distributed variable looks for attributes in its value, and may compute it
    # with all other processes.
    if isinstance(variable, tf.Variable):
        return variable
    is_keras3 = hasattr(variable, "_value") and hasattr(variable, "path")
    return variable.value if is_keras3 else variable


def as_int(value: Any) -> int:
    """Return a number or the value of a scalar variable, distributed ones included."""
    value = tf_variable(value)
    return int(value.numpy() if hasattr(value, "numpy") else value)


def is_in_graph(variable: tf.Variable) -> bool:
    """Tell whether a variable is one of a v1 graph, with its value in a session."""
    return isinstance(getattr(variable, "graph", None), tf.Graph)


def optimizer_of(model: KerasModel) -> Any:
    """Return the optimizer that the model has now; None without one."""
    return getattr(model, "optimizer", None)


def name_of(optimizer: Optimizer) -> str:
    """Return the name that begins the names of an optimizer's variables."""
    name = getattr(optimizer, "name", None) or getattr(optimizer, "_name", None)
    return str(name or "optimizer")


def inner_optimizer(optimizer: Optimizer) -> Any:
    """Return the optimizer that updates variables, inside one that scales the loss."""
    return getattr(optimizer, "inner_optimizer", optimizer)


def _rate(optimizer: Optimizer) -> Any:
    """Return what an optimizer has as its rate: a variable, a function, or None."""
    inner = inner_optimizer(optimizer)
    rate = getattr(inner, "_learning_rate", None)
    # Those of Keras <= 2.10 have made a variable when they have given their `lr`.
    if rate is None and getattr(inner, "lr", None) is not None:
        rate = getattr(inner, "_hyper", {}).get("learning_rate")
    return tf_variable(rate)


def learning_rate_variable(optimizer: Optimizer) -> Any:
    """Return the `tf.Variable` of a constant learning rate; None for a schedule."""
    rate, inner = _rate(optimizer), inner_optimizer(optimizer)
    if not isinstance(rate, tf.Variable):
        return None
    # Keras 3's `MultiOptimizer` has one that no update reads, and refuses to give it.
    return rate if hasattr(inner, "learning_rate") or hasattr(inner, "lr") else None


def constant_rate(optimizer: Optimizer) -> Any:
    """Return the variable that is the rate of every step; None if there is none."""
    is_changed = decay_of(optimizer) > 0.0
    return None if is_changed else learning_rate_variable(optimizer)


def scheduled_rate(optimizer: Optimizer, counter: Any = None) -> Any:
    """Return what a schedule, function or decay gives for the next step; else None.

    Args:
      optimizer: an optimizer of Keras, wrapped in another one or not.
      counter: the variable that counts its steps, if that is not `counter_of`.
    """
    rate, decay = _rate(optimizer), decay_of(optimizer)
    is_computed = callable(rate) and not isinstance(rate, tf.Variable)
    if rate is None or not (is_computed or decay > 0.0):
        return None
    step = tf_variable(counter_of(optimizer) if counter is None else counter)
    number = tf.cast(step, tf.float32)
    if any(cls.__name__ == "LearningRateSchedule" for cls in type(rate).__mro__):
        # Optimizers of Keras <= 2.10 give it the step as a float.
        rate = rate(number if hasattr(inner_optimizer(optimizer), "_hyper") else step)
    elif is_computed:
        rate = rate()
    return tf.cast(rate, tf.float32) / (1.0 + decay * number)


def decay_of(optimizer: Optimizer) -> float:
    """Return the `decay` of optimizers of Keras <= 2.10, which no variable shows."""
    inner = inner_optimizer(optimizer)
    if any(cls.__name__ == "Nadam" for cls in type(inner).__mro__):
        return 0.0  # its decay is of the momentum
    return float(getattr(inner, "_initial_decay", 0.0))


def rate_of_next_step(optimizer: Optimizer) -> Any:
    """Return the value of the rate, constant or of a schedule; None without one."""
    variable = constant_rate(optimizer)
    return scheduled_rate(optimizer) if variable is None else variable.read_value()


def updating_by(
    optimizer: Optimizer, rate: object
) -> contextlib.AbstractContextManager[None]:
    """Return a context in which updates take `rate` in the place of the schedule's.

    Args:
      optimizer: an optimizer of Keras, wrapped in another one or not.
      rate: a number, a tensor or a variable of the graph that is traced.
    """
    inner = inner_optimizer(optimizer)
    if hasattr(inner, "_learning_rate"):
        return patching.patched(inner, _learning_rate=rate)
    hyper = {**inner._hyper, "learning_rate": rate}
    return patching.patched(inner, _hyper=hyper, _initial_decay=0.0)


def counter_of(optimizer: Optimizer) -> Any:
    """Return the variable that counts the steps of an optimizer; None without one.

    With gradient accumulation, the public `iterations` of Keras 3 counts updates. Its
    schedules read the number of steps, which only `_iterations` has.
    """
    inner = inner_optimizer(optimizer)
    counter = made_counter_of(optimizer)
    return getattr(inner, "iterations", None) if counter is None else counter


def made_counter_of(optimizer: Optimizer) -> Any:
    """Return what `counter_of` does, or None where that would have to make it."""
    inner = inner_optimizer(optimizer)
    counter = getattr(inner, "_iterations", None)
    if counter is None and not hasattr(type(inner), "iterations"):
        counter = getattr(inner, "iterations", None)
    return counter


def steps_counted(model: KerasModel) -> int:
    """Return how many steps the model's optimizer has counted."""
    counter = counter_of(optimizer_of(model))
    if counter is None:
        return 0
    if is_in_graph(counter):
        return int(keras_behind(model).backend.get_value(counter))
    return as_int(counter)


def loss_scale(optimizer: Optimizer) -> Any:
    """Return the number by which Keras 3 divides gradients; None if it does not."""
    # Keras 2 gives its optimizers gradients without the scale of the loss.
    scale = getattr(optimizer, "dynamic_scale", None)
    if scale is not None:
        return tf.identity(tf_variable(scale))
    return getattr(optimizer, "loss_scale_factor", None)


def build(model: KerasModel) -> None:
    """Make the slots of the model's optimizer that its first update would make."""
    optimizer = optimizer_of(model)
    if not tf.executing_eagerly() and hasattr(model, "_make_train_function"):
        if optimizer is not None:
            model._make_train_function()  # which makes the slots in a v1 graph
        return
    v1_optimizer = v1_inside(optimizer)
    if v1_optimizer is not None:
        with model.distribute_strategy.scope():
            make_slots(v1_optimizer, model.trainable_variables)
        return
    # Those of the module `legacy` have no `build`.
    of_legacy = getattr(optimizer, "_create_all_weights", None)
    make = getattr(optimizer, "build", of_legacy)
    if make is not None and not getattr(optimizer, "built", False):
        with model.distribute_strategy.scope():
            make(model.trainable_variables)


def optimizers_of(model: KerasModel) -> list[tuple[str, Any]]:
    """Return the optimizers of a model with their names, without those in others."""
    optimizer = optimizer_of(model)
    # Those of a GAN, say, are attributes that only its own `train_step` knows.
    in_attributes = [
        (name, value)
        for name, value in vars(model).items()
        if hasattr(value, "apply_gradients")
    ]
    return [(name_of(optimizer), optimizer), *in_attributes]


def learning_rates(model: KerasModel) -> list[Any]:
    """Return the variables of the constant rates that a step of the model may read."""
    optimizers = [optimizer for _, optimizer in optimizers_of(model)]
    for optimizer in list(optimizers):
        optimizers += getattr(optimizer, "optimizers", ())
    rates = {id(rate): rate for rate in map(learning_rate_variable, optimizers)}
    return [rate for rate in rates.values() if rate is not None]


def unread_slots(optimizer: Optimizer) -> list[Any]:
    """Return the slots that an optimizer makes and does not use."""
    inner = inner_optimizer(optimizer)
    momentums = getattr(inner, "momentums", ())
    if type(inner).__name__ != "SGD" or not momentums:
        return []
    # SGD of Keras 2 makes them without a momentum too. A legacy one, whose momentum may
    # be a variable of a graph, has no such list.
    return [] if inner.momentum else [*map(tf_variable, momentums)]


def variables_of(optimizer: Optimizer) -> list[Any]:
    """Return all that an optimizer's next updates depend on, its rate included.

    That is more than `optimizer.variables`: Nadam of Keras 2 has a product and a scaled
    optimizer of Keras 2 has the scale in variables that are not listed there.
    """
    listed = getattr(optimizer, "variables", ())
    every = [*(listed() if callable(listed) else listed)]
    rate = learning_rate_variable(optimizer)
    every += [] if rate is None else [rate]
    for part in (optimizer, inner_optimizer(optimizer)):
        every += [
            value
            for name, value in getattr(part, "__dict__", {}).items()
            if name not in _COMPUTED and isinstance(tf_variable(value), tf.Variable)
        ]
        # In a v1 graph the numbers of a legacy optimizer are variables too.
        numbers = getattr(part, "_hyper", {}).values()
        every += [n for n in numbers if isinstance(n, tf.Variable) and is_in_graph(n)]
    scale = getattr(optimizer, "_loss_scale", None)
    of_scale = [getattr(scale, n, None) for n in ("current_loss_scale", "counter")]
    return every + [value for value in of_scale if value is not None]
