"""The entries of a TF1 checkpoint, written and read as a `Saver` of the graph would."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from hookbridge.adapters.session_graph import graph_ops, session_variables
from hookbridge.ground import collected, compat
from hookbridge.ground.protocols import Graph, Session, Variable


class SavedArray(NamedTuple):
    """One array of a checkpoint, or a slice of one.

    A partitioned variable `w` is several variables in its graph (`w/part_0`,
    `w/part_1`) and one array `w` in its checkpoints.
    """

    name: str  # the array's name in the checkpoint
    # Which part of the array it is, as TensorFlow writes it: `"4 1 0,2:0,1"` is rows 0
    # and 1 of 4 rows and 1 column. Empty for all of it.
    slice: str
    variable: str  # the name of the variable in its graph, without ":0"

    def of(self, array: object) -> Any:
        """Return this entry's part of the whole array."""
        for axis, part in enumerate(self.slice.rpartition(" ")[2].split(":")):
            if "," in part:
                begin, length = map(int, part.split(","))
                array = np.take(array, range(begin, begin + length), axis)
        return array


def entry_of(variable: Any) -> SavedArray:
    """Return where a `Saver` keeps a variable of a graph."""
    name, info = variable.op.name, variable._save_slice_info
    return (
        SavedArray(info.full_name, info.spec, name)
        if info
        else SavedArray(name, "", name)
    )


def entries_of(variables: Iterable[Any]) -> dict[SavedArray, Any]:
    """Return `{entry: variable}` of variables, as `Saver` names the entries."""
    return {entry_of(variable): variable for variable in variables}


def entries_of_graph(graph: Graph) -> dict[SavedArray, Any]:
    """Return `{entry: what to fetch}` of what the default `Saver` would write."""
    entries = entries_of(session_variables.saved_variables(graph))
    # Such as tables that training changes.
    saveables = tf.compat.v1.GraphKeys.SAVEABLE_OBJECTS
    entries |= entries_of(collected.variables(graph, saveables))
    for saveable in graph.get_collection(saveables):
        for spec in getattr(saveable, "specs", ()):
            entries[SavedArray(spec.name, spec.slice_spec, spec.name)] = spec.tensor
    return entries


def entries_of_saver(saver: Any, graph: Graph) -> dict[SavedArray, Any]:
    """Return `{entry: what to fetch}` of what a saver writes.

    Args:
      saver: a `tf.compat.v1.train.Saver`. It may have names of its own: in an
        object-based checkpoint of Keras they are paths in the model.
      graph: the graph that has its ops.
    """
    save = graph.as_graph_element(saver.saver_def.save_tensor_name).op
    entries: dict[SavedArray, Any] = {}
    for op in graph_ops.ancestors([save]):
        if op.type in ("SaveV2", "SaveSlices"):  # the newer and the older format
            constants = (graph_ops.constant_value(i) for i in op.inputs[1:3])
            names, slices = ([s.decode() for s in strings] for strings in constants)
            for name, part, tensor in zip(names, slices, op.inputs[3:], strict=True):
                entries[SavedArray(name, part, name)] = tensor
    return entries


def is_saved(variable: Variable) -> bool:
    """Return whether a saver of the variable's graph writes it."""
    graph = variable.graph
    definitions = [s.saver_def for s in collected.savers(graph)]
    names = [d.save_tensor_name for d in definitions if d is not None]
    saves = [graph.as_graph_element(name).op for name in names]
    return collected.handle_op(variable) in graph_ops.ancestors(saves)


def fetch(session: Session, entries: Mapping[SavedArray, Any]) -> dict[SavedArray, Any]:
    """Return the values of a session, with the types that `write` needs.

    Args:
      session: a session of the entries' graph.
      entries: `{entry: what to fetch}`, as `entries_of_saver` returns it.
    """
    arrays: dict[SavedArray, Any] = session.run(dict(entries))
    for entry, source in entries.items():
        # A session gives quantized numbers as plain ones.
        if source.dtype.is_quantized:
            arrays[entry] = np.asarray(arrays[entry]).view(source.dtype.as_numpy_dtype)
    return arrays


def write(
    prefix: str, values: Mapping[SavedArray, Any], *, in_one_file: bool = False
) -> str:
    """Write arrays or tensors as a TF1 checkpoint, which a `Saver` restores.

    Args:
      prefix: the path, without the ends of the checkpoint's files.
      values: `{entry: array}`, a whole variable or a slice of one each.
      in_one_file: whether to write one file of the older format, that of
        `Saver(write_version=1)`; `prefix` is its path.
    """
    with compat.private("eager_mode")(), tf.device("/cpu:0"):
        entries = sorted(values)
        names = tf.constant([entry.name for entry in entries])
        slices = tf.constant([entry.slice for entry in entries])
        # NumPy takes a number of Python for 64 bits, as a global step has them.
        tensors = [
            tf.convert_to_tensor(v if isinstance(v, tf.Tensor) else np.asarray(v))
            for v in (values[entry] for entry in entries)
        ]
        if in_one_file:
            tf.raw_ops.SaveSlices(
                filename=prefix,
                tensor_names=names,
                shapes_and_slices=slices,
                data=tensors,
            )
        else:
            tf.raw_ops.SaveV2(
                prefix=prefix,
                tensor_names=names,
                shape_and_slices=slices,
                tensors=tensors,
            )
    return prefix


def read(prefix: str, entries: Collection[SavedArray]) -> dict[SavedArray, Any]:
    """Return the arrays of those entries that a checkpoint has.

    Args:
      prefix: the path of a checkpoint, without the ends of its files.
      entries: what to look for.
    """
    reader = tf.train.load_checkpoint(prefix)
    arrays = {
        name: reader.get_tensor(name)
        for name in sorted({entry.name for entry in entries})
        if reader.has_tensor(name)
    }
    return {e: e.of(arrays[e.name]) for e in entries if e.name in arrays}
