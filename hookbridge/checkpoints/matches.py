"""What a checkpoint and a model have in common, and what of it must fit."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from hookbridge import errors
from hookbridge.adapters.keras_model import optimizers, variables
from hookbridge.adapters.keras_model.variables import ModelVariable
from hookbridge.ground.protocols import KerasModel
from hookbridge.ground.texts.counted import counted

# Entries that Keras computes instead of storing.
_DERIVED = ("beta1_power", "beta2_power", "signal_early_stopping/STOP")
# The names of an optimizer's rate, and of its counter in the three families of Keras.
_RATE = "/learning_rate"
_COUNTERS = ("iteration", "iterations", "iter")


class RestoreReport(NamedTuple):
    """What `restore` did.

    Attributes:
      restored: `{variable of the model: checkpoint entry}`.
      kept: variables of the model that the checkpoint has nothing for; they keep
        their values.
      unused: entries of the checkpoint that no variable took.
      mismatched: `{variable: reason}` where an entry exists but does not fit.
      global_step: the step of the checkpoint, None if it has none.
      epoch: the `initial_epoch` with which `fit` and `OwnLoop` go on, by the state of
        callbacks at the checkpoint. None if there is no such state, or its loop had
        no epochs; `global_step` divided by the steps of an epoch says it then.
    """

    restored: Mapping[str, str]
    kept: tuple[str, ...]
    unused: tuple[str, ...]
    mismatched: Mapping[str, str]
    global_step: int | None = None
    epoch: int | None = None

    def __str__(self) -> str:
        lines = [f"restored {counted(len(self.restored), 'variable')}"]
        lines += [f"  {name} <- {entry}" for name, entry in self.restored.items()]
        for title, names in (
            ("kept as they were (not in the checkpoint)", self.kept),
            ("in the checkpoint, not in the model", self.unused),
        ):
            if names:
                lines += [f"{title}: {len(names)}", *(f"  {name}" for name in names)]
        if self.mismatched:
            lines.append(f"did not fit: {len(self.mismatched)}")
            lines += [f"  {name}: {why}" for name, why in self.mismatched.items()]
        return "\n".join(lines)


class MatchedVariables:
    """The variables of a model, with the entries that fit them, or why none does."""

    def __init__(self) -> None:
        self.fitting: list[tuple[ModelVariable, str]] = []
        # Why no entry fits; nothing where there is no entry.
        self._unfit: list[tuple[ModelVariable, str]] = []

    def add(
        self, variable: ModelVariable, entry: str | None, shapes: Mapping[str, Any]
    ) -> None:
        """Note a variable with its entry, if there is one."""
        if entry is None:
            self._unfit.append((variable, ""))
            return
        shape = variables.components(variable.eager)[0].shape.as_list()
        if list(shapes[entry]) == shape:
            self.fitting.append((variable, entry))
            return
        reason = f"`{entry}` has shape {list(shapes[entry])}, expected {shape}"
        self._unfit.append((variable, reason))

    def lost_weights(self) -> list[str]:
        """Return the names of weights that no entry fits."""
        return [v.name for v, _ in self._unfit if v.is_weight]

    def lost_of_optimizers(self, without: Collection[int]) -> list[str]:
        """Return the names of optimizers' variables but rates that no entry fits.

        Args:
          without: the ids of variables that need no entry.
        """
        return [
            variable.name
            for variable, reason in self._unfit
            if variable.is_of_optimizer
            and id(variable.eager) not in without
            and (reason or not variable.name.endswith(_RATE))
        ]

    def report(
        self, entries: Iterable[str], step: int | None, epoch: int | None
    ) -> RestoreReport:
        """Return what a restore does with the entries of the checkpoint."""
        taken = {entry for _, entry in self.fitting}
        return RestoreReport(
            restored={v.name: entry for v, entry in self.fitting},
            kept=tuple(v.name for v, reason in self._unfit if not reason),
            unused=tuple(sorted(set(entries) - taken - set(_DERIVED))),
            mismatched={v.name: reason for v, reason in self._unfit if reason},
            global_step=step,
            epoch=epoch,
        )


def check_weights(
    path: str, model: KerasModel, matches: MatchedVariables, report: RestoreReport
) -> None:
    """Refuse a checkpoint that has not all weights."""
    unmatched = matches.lost_weights()
    if unmatched:
        raise errors.CheckpointMismatchError(
            f"{path} has nothing that fits {_quoted(unmatched)} of the model "
            f"`{model.name}`. "
            "Map the names with `names={...}`, or accept it with "
            f"`must_restore_weights=False`.\n{report}"
        )


def check_optimizer(
    path: str,
    model: KerasModel,
    matches: MatchedVariables,
    report: RestoreReport,
    entries: Iterable[str],
) -> None:
    """Refuse a checkpoint after which the optimizer would not go on as it was."""
    unread = optimizers.unread_slots(optimizers.optimizer_of(model))
    unmatched = matches.lost_of_optimizers(without={id(v) for v in unread})
    left = _left_of_optimizers(report.unused, entries)
    if unmatched or left:
        owner = f"the optimizer of the model `{model.name}`"
        wrong = []
        if unmatched:
            wrong.append(f"has nothing that fits {_quoted(unmatched)} of {owner}")
        if left:
            wrong.append(
                f"has optimizer entries that {owner} does not use: {_quoted(left)}"
            )
        raise errors.CheckpointMismatchError(
            f"{path} {', and '.join(wrong)}. The training would not go on as before. "
            "Compile the model with the optimizer of the checkpoint, map the names "
            "with `names={...}`, or begin with a fresh optimizer by "
            "`must_restore_optimizer=False`.\n"
            f"{report}"
        )


def _left_of_optimizers(unused: Iterable[str], entries: Iterable[str]) -> list[str]:
    """Return the unused entries but rates in the scopes of Keras's optimizers."""
    parts = (entry.rpartition("/") for entry in entries)
    scopes = tuple(f"{scope}/" for scope, _, ending in parts if ending in _COUNTERS)
    return [e for e in unused if e.startswith(scopes) and not e.endswith(_RATE)]


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
