"""The batches of a job, the same in every loop."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.ground import compat
from hookbridge.ground.arguments import parameters_of
from hookbridge.jobs.data.bad_rows import BadRow, find_bad_rows, printed
from hookbridge.jobs.data.pipeline import Pipeline, batched
from hookbridge.jobs.data.rows import Rows
from hookbridge.jobs.loops.towers.spec import EVAL, PREDICT, TRAIN
from hookbridge.jobs.training.definition import ModelDefinition
from hookbridge.jobs.training.training_settings import TrainingSettings
from hookbridge.jobs.training.user_file import find_function

_NAMES = {TRAIN: "train", EVAL: "eval", PREDICT: "predict"}
FLAGS = {mode: f"{name}_files" for mode, name in _NAMES.items()}
_OWN_INPUTS = {mode: f"{name}_input_fn" for mode, name in _NAMES.items()}
_PREFETCHED = 2  # batches


class Inputs:
    """Makes the dataset of each mode."""

    def __init__(
        self,
        definition: ModelDefinition,
        settings: TrainingSettings,
        shard: tuple[int, int] = (1, 0),
    ) -> None:
        self._definition = definition
        self._settings = settings
        self._shard = shard
        self.skipped: dict[str, list[BadRow]] = {}
        self._pipelines: dict[str, Pipeline] = {}
        self._check_used()

    def has(self, mode: str) -> bool:
        """Return whether there are data for a mode."""
        has_function = self._definition.optional(_OWN_INPUTS[mode]) is not None
        return has_function or bool(self._files(mode))

    def function(self, mode: str) -> Callable[[], Any]:
        """Return an `input_fn` without arguments, for graphs and eager mode alike.

        Its dataset has batches. For training it never ends, unless the user's file
        returns a finished dataset, which is taken unchanged.
        """
        definition = self._definition
        if definition.optional(_OWN_INPUTS[mode]) is not None:
            input_fn = find_function(definition.module, _OWN_INPUTS[mode])
            return lambda: _checked(definition, _OWN_INPUTS[mode], input_fn())
        if not self._files(mode):
            flag = FLAGS[mode]
            raise errors.InvalidArgumentError(
                f"Received no --{flag}, and {definition.path} has no "
                f"`{_OWN_INPUTS[mode]}`; expected one of them."
            )
        rows = self._rows(mode)
        if definition.optional("dataset_fn") is None:
            return functools.partial(self._call_input_fn, rows, mode)
        without = self._without(rows, mode)
        return functools.partial(self._call_dataset_fn, rows, mode, without)

    def steps_per_epoch(self) -> int | None:
        """Return the steps of an epoch, given or counted, or None."""
        settings = self._settings
        if settings.steps_per_epoch is not None:
            return settings.steps_per_epoch
        if self._definition.optional(_OWN_INPUTS[TRAIN]) is not None:
            return None
        examples = self._rows(TRAIN).count() - len(self.skipped.get(TRAIN, ()))
        if examples <= 0:
            raise self.nothing_to_train_on()
        towers = settings.num_towers if settings.batch_per_tower else 1
        workers = self._shard[0] if settings.sync else 1
        return math.ceil(examples / (self.batch_size(TRAIN) * towers * workers))

    def batch_size(self, mode: str) -> int:
        """Return the number of examples in a batch."""
        settings = self._settings
        is_training = mode == TRAIN
        return settings.train_batch_size if is_training else settings.eval_batch_size

    def is_empty(self, mode: str) -> bool:
        """Return whether the data of a mode have no batch; looks at the first."""
        with compat.private("eager_mode")():
            return next(iter(self.function(mode)()), None) is None

    def nothing_to_train_on(self) -> errors.InvalidArgumentError:
        """Return the error about training data without a batch: what was read."""
        definition, function = self._definition, _OWN_INPUTS[TRAIN]
        if definition.optional(function) is not None:
            return errors.InvalidArgumentError(
                f"No step was made: the dataset of `{function}` in {definition.path} "
                "has no batch; expected at least one."
            )
        skipped = len(self.skipped.get(TRAIN, ()))
        return errors.InvalidArgumentError(
            f"No step was made: of {self._rows(TRAIN).count()} rows of "
            f"--{FLAGS[TRAIN]}, {skipped} were skipped, and the others gave no batch "
            f"of {self.batch_size(TRAIN)} examples; expected at least one. Check the "
            "rows named above, and how the file handles them."
        )

    def bad_row(
        self, mode: str, loss: Callable[..., Any] | None = None
    ) -> BadRow | None:
        """Search the files for the first row that cannot be read, after a failure."""
        pipeline = self._pipelines.get(mode)
        transform: Callable[[Any], Any]
        if pipeline is not None:
            transform = pipeline.transform
        elif self._definition.optional("dataset_fn") is not None and self._files(mode):
            transform = self._transform(mode)
        else:
            return None
        rows = self._rows(mode)

        def with_loss(data: object) -> Any:
            examples = transform(data)
            if loss is None:
                return examples
            return batched(examples, 1, drop_remainder=False).map(loss)

        bad_rows = find_bad_rows(rows, with_loss, most=1)
        return bad_rows[0] if bad_rows else None

    def _files(self, mode: str) -> tuple[str, ...]:
        files: tuple[str, ...] = getattr(self._settings, FLAGS[mode])
        return files

    def _check_used(self) -> None:
        """Refuse flags about data that nothing in the user's file takes."""
        definition, settings = self._definition, self._settings
        for mode, name in _OWN_INPUTS.items():
            if self._files(mode) and definition.optional(name) is not None:
                raise errors.InvalidArgumentError(
                    f"Received --{FLAGS[mode]}, and {definition.path} has `{name}`, "
                    "which gets no files; expected one of them."
                )
        if definition.optional("dataset_fn") is not None:
            return
        wanted = parameters_of(definition.optional("input_fn"))
        for name in ("header_lines", "bad_rows", "train_batch_size"):
            value = getattr(settings, name)
            is_default = value == TrainingSettings.__dataclass_fields__[name].default
            if not is_default and name.removeprefix("train_") not in wanted:
                raise errors.InvalidArgumentError(
                    f"Received --{name}={value}, and {definition.path} does not use "
                    "it; expected `dataset_fn`, or an `input_fn` that takes it."
                )

    def _rows(self, mode: str) -> Rows:
        flag, header_lines = FLAGS[mode], self._settings.header_lines
        return Rows(self._files(mode), header_lines=header_lines, name=f"--{flag}")

    def _without(self, rows: Rows, mode: str) -> list[tuple[str, int]]:
        """Report the bad rows once, and return them, if the user leaves them out."""
        if self._settings.bad_rows == "stop":
            return []
        if mode not in self.skipped:
            self.skipped[mode] = printed(find_bad_rows(rows, self._transform(mode)))
        return [(row.file, row.number) for row in self.skipped[mode]]

    def _transform(self, mode: str) -> Callable[[Any], Any]:
        return functools.partial(_called, self._definition, mode)

    def _call_dataset_fn(
        self, rows: Rows, mode: str, without: list[tuple[str, int]]
    ) -> Any:
        """Return the batches that `dataset_fn` makes of the rows of this process."""
        data = rows.dataset(without).map(lambda file, number, row: row)
        workers, index = self._shard
        if mode == TRAIN and workers > 1:
            data = data.shard(workers, index)
        examples = _called(self._definition, mode, data)
        if mode == TRAIN:
            examples = examples.repeat()
        return batched(
            examples, self.batch_size(mode), drop_remainder=mode == TRAIN
        ).prefetch(_PREFETCHED)

    def _call_input_fn(self, rows: Rows, mode: str) -> Any:
        """Return what the user's `input_fn` makes of the arguments that it takes."""
        definition, settings = self._definition, self._settings
        function = definition.optional("input_fn")
        facts: Mapping[str, Any] = {
            "files": rows.files,
            "mode": mode,
            "batch_size": self.batch_size(mode),
            "header_lines": settings.header_lines,
            "bad_rows": settings.bad_rows,
            "shard": self._shard if mode == TRAIN else (1, 0),
        }
        if mode not in self._pipelines:
            names = parameters_of(function)
            result = function(**{name: facts[name] for name in facts if name in names})
            if not isinstance(result, Pipeline):
                return _checked(definition, "input_fn", result)
            self._pipelines[mode] = result
            self.skipped[mode] = result.skipped
        return self._pipelines[mode].dataset(training=mode == TRAIN)


def _called(definition: ModelDefinition, mode: str, data: object) -> Any:
    """Call `dataset_fn` with as many of its three arguments as it takes."""
    function = definition.optional("dataset_fn")
    kinds = [p.kind for p in parameters_of(function).values()]
    most = sum(k in (k.POSITIONAL_ONLY, k.POSITIONAL_OR_KEYWORD) for k in kinds)
    arguments = (data, mode, None)[: max(most, 1) if kinds else None]
    return _checked(definition, "dataset_fn", function(*arguments))


def _checked(definition: ModelDefinition, name: str, dataset: object) -> Any:
    if not isinstance(dataset, tf.data.Dataset):
        raise definition.wrong(name, dataset, "a `tf.data.Dataset`")
    return dataset
