"""Methods and arguments that have another name today, or have to be given."""

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
# Function -> the argument that it needs today, after the first one; and the value that
# it had without it, which stands beside the function.
_NEEDED = {
    "yaml.load": ("Loader", "FullLoader"),
    "yaml.load_all": ("Loader", "FullLoader"),
}


def needs_no_name(call: ast.Call, keyword: ast.keyword) -> bool:
    """Whether an argument has no name for all versions, and can do without one."""
    place = _PLACES.get((getattr(call.func, "attr", ""), keyword.arg or ""))
    return place == len(call.args) and keyword is call.keywords[0]


def needed(call: ast.Call) -> ast.keyword | None:
    """An argument that a call has to have today and has not, with its old value."""
    only = call.args[0] if len(call.args) == 1 and not call.keywords else None
    if not isinstance(call.func, ast.Attribute) or isinstance(only, ast.Starred | None):
        return None
    argument = _NEEDED.get(ast.unparse(call.func))
    if argument is None:
        return None
    name, value = argument
    return ast.keyword(name, ast.Attribute(call.func.value, value, ast.Load()))
