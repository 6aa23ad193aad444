"""Methods and arguments that have another name today."""

from __future__ import annotations

import ast

# Method -> its name today.
METHODS = {"export_savedmodel": "export_saved_model"}
# (Method or function, old argument) -> its name today; empty for a call of `prefetch`.
ARGUMENTS = {
    ("add_meta_graph_and_variables", "legacy_init_op"): "main_op",
    ("add_meta_graph", "legacy_init_op"): "main_op",
    ("map", "num_threads"): "num_parallel_calls",
    ("map", "output_buffer_size"): "",
    # Of NumPy and matplotlib.
    ("hist", "normed"): "density",
    ("histogram", "normed"): "density",
    ("histogram2d", "normed"): "density",
    ("histogramdd", "normed"): "density",
    ("nanpercentile", "interpolation"): "method",
    ("nanquantile", "interpolation"): "method",
}
# (Method or function, argument) -> how many arguments stand before it. No name for it
# is one in all versions of its library: it has to stand without.
_PLACES = {("reshape", "newshape"): 1}


def needs_no_name(call: ast.Call, keyword: ast.keyword) -> bool:
    """Whether an argument has no name for all versions, and can do without one."""
    place = _PLACES.get((getattr(call.func, "attr", ""), keyword.arg or ""))
    return place == len(call.args) and keyword is call.keywords[0]
