"""What a callback does with its model in a session loop: files, predictions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from hookbridge import compat, errors
from hookbridge.adapters.live_model import backup as session_backup
from hookbridge.adapters.live_model import weight_files, weight_options
from hookbridge.adapters.live_model.clone import ShadowModel
from hookbridge.adapters.live_model.optimizer import LiveOptimizer
from hookbridge.adapters.live_model.weights import LiveWeights
from hookbridge.adapters.session_graph import variables as session_variables


class LiveModelUse:
    """The methods of `LiveModel` that write, read and compute.

    With a Keras model in the graph its eager clone does it, filled with the session's
    weights.
    """

    _live_weights: LiveWeights
    _live_shadow: ShadowModel | None
    _live_evaluate: Callable[[], Mapping[str, float]] | None
    _live_graph: Any
    optimizer: LiveOptimizer
    # Files that have to hold the whole session.
    _live_backups: frozenset[str]

    # --- files --------------------------------------------------------------

    def save_weights(
        self,
        filepath: Any,
        overwrite: bool = True,
        save_format: Any = None,
        options: Any = None,
        **others: Any,
    ) -> None:
        """Writes the session's weights.

        With a Keras model in the graph in every format of its Keras; with a bare
        graph HDF5 (`.h5`, or `save_format="h5"`) or a TF1 checkpoint (any other name).

        Raises:
          errors.LiveModelError: an option that has no effect on a bare graph.
        """
        path = str(filepath)
        given = {"save_format": save_format, "options": options, **others}
        given = {name: value for name, value in given.items() if value is not None}
        if path not in self._live_backups:
            self._write_weights(filepath, overwrite, **given)
            return
        self._write_weights(session_backup.part_of(path), True, **given)
        live = self._live_weights
        beside = session_backup.variables(self._live_graph, live.all)
        names = [v.op.name for v in beside]
        values = dict(zip(names, live.read(beside), strict=True))
        session_backup.complete(path, {**values, **self.optimizer.fed_rate()})

    def _write_weights(self, filepath: Any, overwrite: bool, **given: Any) -> None:
        if self._live_shadow:
            with self._own_call():
                self._filled().save_weights(filepath, overwrite=overwrite, **given)
            return
        path = str(filepath)
        h5 = weight_options.as_h5(path, given.pop("save_format", None))
        weight_options.check("save_weights", given.pop("options", None), given)
        live = self._live_weights
        named = dict(
            zip([v.op.name for v in live.all], live.read(live.all), strict=True)
        )
        weight_files.save(path, named, overwrite, h5=h5)

    def load_weights(
        self,
        filepath: Any,
        skip_mismatch: bool = False,
        by_name: bool = False,
        options: Any = None,
        **others: Any,
    ) -> Any:
        """Reads weights that `save_weights` wrote into the session.

        On a bare graph always by name. With `by_name` a variable that the file has not
        stays as it is, with `skip_mismatch` one of another shape too.

        Raises:
          errors.LiveModelError: an option that has no effect on a bare graph.
        """
        live = self._live_weights
        given = {"by_name": by_name or None, "options": options, **others}
        given = {name: value for name, value in given.items() if value is not None}
        if str(filepath) in self._live_backups:
            self._load_rest(str(filepath))
        if self._live_shadow:
            shadow = self._filled()
            with compat.private("eager_mode")():
                status = shadow.load_weights(
                    filepath, skip_mismatch=skip_mismatch, **given
                )
            live.mirrors.push()
            return status
        weight_options.check("load_weights", options, others)
        lenient = bool(by_name or skip_mismatch)
        names = [v.op.name for v in live.all]
        found = weight_files.load(str(filepath), names, lenient=lenient)
        pairs = [
            (v, found[n]) for v, n in zip(live.all, names, strict=True) if n in found
        ]
        if skip_mismatch:
            pairs = [(v, x) for v, x in pairs if v.shape.is_compatible_with(x.shape)]
        live.write([v for v, _ in pairs], [x for _, x in pairs])
        return None

    def _load_rest(self, path: str) -> None:
        live = self._live_weights
        others = session_backup.variables(self._live_graph, live.all)
        rates = self.optimizer.fed_rate()
        names = [v.op.name for v in others]
        found = session_backup.load(path, [*names, *rates])
        kept = [(v, found[n]) for n, v in zip(names, others, strict=True) if n in found]
        session_variables.write(live.session(), kept)
        for name in rates:
            if name in found:
                self.optimizer.learning_rate = found[name]

    def save(self, filepath: Any, overwrite: bool = True, **options: Any) -> None:
        """Writes the whole model with the session's weights.

        Raises:
          errors.LiveModelError: there is no Keras model to write.
        """
        with self._own_call():
            self._need_shadow("save").save(filepath, overwrite=overwrite, **options)

    def reset_states(self) -> None:
        """Sets the states of stateful recurrent layers to zero, in the session."""
        self._need_shadow("reset_states").reset_states()
        assert self._live_shadow is not None
        states = self._live_shadow.states()
        zeros = [(v, np.zeros(v.shape.as_list())) for v in states]
        session_variables.write(self._live_weights.session(), zeros)

    # --- use ----------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with compat.private("eager_mode")():
            return self._need_shadow("__call__")(*args, **kwargs)

    def predict(self, *args: Any, **kwargs: Any) -> Any:
        """Predictions of the clone with the session's weights."""
        kwargs.setdefault("verbose", 0)
        with self._own_call():
            return self._need_shadow("predict").predict(*args, **kwargs)

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """Runs `validation=` and returns its metrics.

        Data given as arguments is evaluated by the clone instead, if it is compiled.

        Returns:
          A list in the order of the metrics, or a dict with `return_dict=True`; a
          single metric by itself.
        """
        if args or "x" in kwargs:
            with self._own_call():
                return self._need_shadow("evaluate").evaluate(*args, **kwargs)
        ignored = kwargs.keys() - {"verbose", "return_dict", "batch_size"}
        if any(kwargs[name] is not None for name in ignored):
            raise errors.LiveModelError(
                f"`model.evaluate` was called with {', '.join(sorted(ignored))} and "
                "without data, but this callback runs in a session loop under "
                "hookbridge, where that runs the `validation` given to `as_hooks` as "
                "it is. Leave them out, or give data and `as_hooks(..., model=model)`."
            )
        if self._live_evaluate is None:
            raise errors.LiveModelError(
                "`model.evaluate()` was called, but this callback runs in a session "
                "loop under hookbridge, which has no validation data. Give "
                "`as_hooks(..., validation=...)`."
            )
        # The validation reads the session.
        self.optimizer.push()
        self._live_weights.mirrors.push()
        result = dict(self._live_evaluate())
        if kwargs.get("return_dict"):
            return result
        numbers = list(result.values())
        return numbers[0] if len(numbers) == 1 else numbers

    @contextlib.contextmanager
    def _own_call(self) -> Iterator[None]:
        """Around what the clone does at once, with the session's weights."""
        with compat.private("eager_mode")(), self._live_weights.mirrors.own_call():
            yield

    def _filled(self) -> Any:
        """The clone with the session's weights."""
        assert self._live_shadow is not None
        self._live_weights.mirrors.of(self._live_weights.all)
        return self._live_shadow.model

    def _need_shadow(self, what: str) -> Any:
        if self._live_shadow:
            return self._filled()
        why = "there is no Keras model in its graph"
        if self._live_shadow is not None:
            why = f"its graph's model cannot be cloned ({self._live_shadow.reason})"
        raise errors.LiveModelError(
            f"`model.{what}` was asked for, but this callback runs in a session loop "
            f"under hookbridge and {why}. Give the tf.keras/tf_keras model of the "
            "graph as `as_hooks(..., model=model)`; `get_weights`, `set_weights`, "
            "`save_weights` and `load_weights` work without one."
        )
