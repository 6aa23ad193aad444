"""What a callback does with its model in a session loop: files, predictions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hookbridge import compat, errors
from hookbridge.adapters import session_backup, session_variables, weight_files
from hookbridge.adapters.live_optimizer import LiveOptimizer
from hookbridge.adapters.live_weights import LiveWeights
from hookbridge.adapters.shadow_model import ShadowModel


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
        self, filepath: Any, overwrite: bool = True, **options: Any
    ) -> None:
        """Writes the session's weights.

        With a Keras model in the graph in every format of its Keras; with a bare
        graph HDF5 (`.h5`) or a TF1 checkpoint (any other name).
        """
        path = str(filepath)
        if path not in self._live_backups:
            self._write_weights(filepath, overwrite, **options)
            return
        self._write_weights(session_backup.part_of(path), True, **options)
        live = self._live_weights
        others = session_backup.variables(self._live_graph, live.all)
        names = [v.op.name for v in others]
        values = dict(zip(names, live.read(others), strict=True))
        session_backup.complete(path, {**values, **self.optimizer.fed_rate()})

    def _write_weights(self, filepath: Any, overwrite: bool, **options: Any) -> None:
        if self._live_shadow:
            with self._own_call():
                self._filled().save_weights(filepath, overwrite=overwrite, **options)
            return
        live = self._live_weights
        named = dict(
            zip([v.op.name for v in live.all], live.read(live.all), strict=True)
        )
        weight_files.save(str(filepath), named, overwrite)

    def load_weights(self, filepath: Any, *args: Any, **options: Any) -> Any:
        """Reads weights that `save_weights` wrote into the session."""
        live = self._live_weights
        if str(filepath) in self._live_backups:
            self._load_rest(str(filepath))
        if self._live_shadow:
            shadow = self._filled()
            with compat.private("eager_mode")():
                status = shadow.load_weights(filepath, *args, **options)
            live.mirrors.push()
            return status
        names = [v.op.name for v in live.all]
        live.write(live.all, weight_files.load(str(filepath), names))
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
