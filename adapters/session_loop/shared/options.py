"""The options of one `as_hooks` call: checked once, then passed on as one object."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hookbridge import errors
from hookbridge.adapters.guests import keras_rows
from hookbridge.adapters.guests.guest_record import Guest
from hookbridge.adapters.guests.kinds import Flavour
from hookbridge.adapters.live_model import backup, clone
from hookbridge.ground.arguments import (
    optional_count,
    shown,
    string_mapping,
    with_arguments,
)
from hookbridge.ground.protocols import Graph, KerasModel

# How the length of an epoch is given: in Python, and on a command line.
_BY_ARGUMENT = "`as_hooks(..., steps_per_epoch=<examples // batch size>)`"
BY_FLAG = "`--steps_per_epoch=<examples // batch size>`"


@dataclass(frozen=True, kw_only=True, eq=False)
class HookOptions:
    """What `as_hooks` was given. Its docstring explains the options.

    `way_to_epochs` is what an error advises where `steps_per_epoch` is missing.
    """

    callbacks: Sequence[Guest] = ()
    steps_per_epoch: int | None = None
    epochs: int | None = None
    model: Any = None
    logs: Any = None
    validation: Any = None
    validation_freq: Any = 1
    learning_rate: Any = None
    params: Any = None
    missing_metric: str = "refuse"
    hooks_on: str = "runs"
    way_to_epochs: str = _BY_ARGUMENT

    def __post_init__(self) -> None:
        for name in ("steps_per_epoch", "epochs"):
            object.__setattr__(self, name, optional_count(name, getattr(self, name)))
        _check_frequency(self.validation_freq)
        for name in ("logs", "params"):
            object.__setattr__(self, name, string_mapping(name, getattr(self, name)))
        self._check_words()
        _check_logs(self.logs)
        if self.epochs is not None and self.steps_per_epoch is None:
            raise errors.EpochsUndefinedError(
                f"`epochs={self.epochs}` was given without `steps_per_epoch`; expected "
                "both: `as_hooks(..., steps_per_epoch=..., epochs=...)`.",
                see="epochs in a session",
            )
        if self.model is not None and not _is_provider(self.model):
            clone.check(self.model)

    def _check_words(self) -> None:
        """Refuse unknown values of enumerated options."""
        if self.missing_metric not in ("refuse", "warn"):
            raise errors.InvalidArgumentError(
                f"`missing_metric` is {shown(self.missing_metric)}; expected 'refuse', "
                "or 'warn' to train on as Keras does."
            )
        if self.hooks_on not in ("runs", "steps"):
            raise errors.InvalidArgumentError(
                f"`hooks_on` is {shown(self.hooks_on)}; expected 'runs', or 'steps' to "
                "call hooks in no other run of the session."
            )

    def validates_after(self, epoch: int) -> bool:
        """Return whether an epoch, from 0 on, ends with the validation, as in Keras."""
        if isinstance(self.validation_freq, Collection):
            return epoch + 1 in self.validation_freq
        return (epoch + 1) % int(self.validation_freq) == 0

    @property
    def validates(self) -> bool:
        """Return whether any epoch ends with the validation, as far as is known."""
        if self.epochs is None:
            return True
        freq = self.validation_freq
        first = min(freq) if isinstance(freq, Collection) else freq
        return bool(first <= self.epochs)

    @property
    def last_step(self) -> int | None:
        """The global step at the end of the last epoch; None without `epochs`."""
        if self.epochs is None or self.steps_per_epoch is None:
            return None
        return self.epochs * self.steps_per_epoch

    @functools.cached_property
    def flavours(self) -> frozenset[Flavour]:
        """The Keras versions that the callbacks were written for."""
        return frozenset(c.flavour for c in self.callbacks if c.flavour is not None)

    @functools.cached_property
    def backups(self) -> frozenset[str]:
        """The weights files that have to hold the whole session."""
        return backup.paths(self.callbacks)

    def keras_model(self, graph: Graph) -> Any:
        """Return the Keras model of a graph, or None."""
        model = self.model() if _is_provider(self.model) else self.model
        if model is None:
            return None
        clone.check(model)
        first = next(iter(model.weights), None)
        if first is not None and getattr(first, "graph", None) is not graph:
            raise errors.InvalidArgumentError(
                f"`model` is `{model.name}`, whose weight `{first.name}` is not in the "
                "graph of this session. Build the model inside the session's graph, or "
                "give a function that returns the model of the present graph."
            )
        return model

    def params_for(self, guest: Guest) -> dict[str, Any]:
        """Return the `params` of a callback; each gets a separate dict."""
        facts = keras_rows.row(guest.name)
        is_bar = facts.is_progress_bar
        params = {
            # Whoever adds a progress bar wants it to print.
            "verbose": int(is_bar),
            "epochs": self.epochs,
            "steps": self.steps_per_epoch,
            **self.params,
        }
        if params["epochs"] is None and is_bar:
            # The bar tests `epochs > 1`, which fails for None; 1 prints no numbers.
            params["epochs"] = 1
        if facts.needs_metrics:
            # Keras averages the metrics itself since TF 2, but `BaseLogger` fails
            # without a list of metrics to average.
            params.setdefault("metrics", [])
        return params


def _is_provider(model: KerasModel) -> bool:
    """Return whether it is a function that returns the model."""
    is_function = callable(model) and not hasattr(model, "weights")
    if is_function and not inspect.isclass(model):
        with_arguments("model", model)
        return True
    return False


def _check_logs(logs: Mapping[str, Any]) -> None:
    """Refuse entries of `logs` that cannot be metrics of the training."""
    for key, source in logs.items():
        if not key or key.startswith("val_"):
            raise errors.InvalidArgumentError(
                f"`logs` has the key {shown(key)}; expected names of metrics of the "
                "training. To get `val_*`, give `validation=`."
            )
        if source is None:
            raise errors.InvalidArgumentError(
                f"logs[{key!r}] is None; expected a tensor of the training graph, or "
                "its name. Leave the entry out if there is none: hookbridge then "
                "looks for a loss in the graph."
            )


def _check_frequency(value: object) -> None:
    """Refuse a `validation_freq` that Keras would not take."""
    if isinstance(value, Collection) and not isinstance(value, (str, bytes)):
        epochs = [optional_count("validation_freq", epoch) for epoch in value]
        if epochs and None not in epochs:
            return
        raise errors.InvalidArgumentError(
            f"Received `validation_freq={shown(value)}`; expected at least one epoch "
            "that ends with the validation, counted from 1."
        )
    if optional_count("validation_freq", value) is None:
        raise errors.InvalidArgumentError(
            "Received `validation_freq=None`; expected the number of epochs between "
            "validations, or the epochs that end with one, counted from 1."
        )
