"""The files that a callback lets its model write and read in a session loop."""

from __future__ import annotations

from typing import Any

from hookbridge.adapters.live_model import backup, weight_files
from hookbridge.adapters.live_model.clone import require_clone
from hookbridge.adapters.live_model.link import Link
from hookbridge.adapters.session_graph import saved
from hookbridge.ground.protocols import Graph


class ModelFiles:
    """Saving and loading: through the clone if there is one, else by variable name."""

    def __init__(self, link: Link, graph: Graph, backups: frozenset[str]) -> None:
        self._link = link
        self._graph = graph
        self._backups = backups

    def save_weights(
        self,
        filepath: object,
        overwrite: bool = True,
        save_format: object = None,
        options: object = None,
        **others: Any,
    ) -> None:
        """Write the session's weights.

        With a Keras model in the graph, all formats of its Keras work. A bare graph is
        written as HDF5 (a name such as `*.h5`, or `save_format="h5"`), otherwise as a
        TF1 checkpoint. An option that would have no effect on a bare graph is refused.
        """
        path, live = str(filepath), self._link.weights
        if path in self._backups:
            backup.save(path, live, self._link.rates, self._graph)
        elif self._link.clone:
            keywords = _given(save_format=save_format, options=options, **others)
            with live.file_call():
                self._link.clone.model.save_weights(
                    filepath, overwrite=overwrite, **keywords
                )
        else:
            h5 = weight_files.as_h5(path, save_format)
            weight_files.check_options("save_weights", options, others)
            weight_files.save(path, live.entries(live.all), overwrite, h5=h5)

    def load_weights(
        self,
        filepath: object,
        skip_mismatch: bool = False,
        by_name: bool = False,
        options: object = None,
        **others: Any,
    ) -> Any:
        """Set the session's weights from a file that `save_weights` wrote.

        On a bare graph, variables are always found by name. With `by_name`, a variable
        that is not in the file keeps its value; with `skip_mismatch`, a variable of
        another shape keeps its value too. Other options are refused there.
        """
        path, live = str(filepath), self._link.weights
        if path in self._backups:
            return backup.load(path, live, self._link.rates, self._graph)
        if self._link.clone:
            keywords = _given(by_name=by_name or None, options=options, **others)
            with live.file_call():
                return self._link.clone.model.load_weights(
                    filepath, skip_mismatch=skip_mismatch, **keywords
                )
        weight_files.check_options("load_weights", options, others)
        lenient = bool(by_name or skip_mismatch)
        entries = saved.entries_of(live.all)
        arrays = weight_files.load(path, entries, lenient=lenient)
        pairs = [(v, arrays[e]) for e, v in entries.items() if e in arrays]
        if skip_mismatch:
            pairs = [(v, x) for v, x in pairs if v.shape.is_compatible_with(x.shape)]
        live.write([v for v, _ in pairs], [x for _, x in pairs])
        return None

    def save(self, filepath: Any, overwrite: bool = True, **options: Any) -> None:
        """Write the whole model with the session's weights."""
        clone = require_clone(self._link.clone, "save")
        with self._link.weights.file_call():
            clone.model.save(filepath, overwrite=overwrite, **options)


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
