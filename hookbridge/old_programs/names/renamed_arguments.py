"""Methods and arguments that have another name today."""

from __future__ import annotations

import ast

from hookbridge.old_programs.names import keras_arguments
from hookbridge.old_programs.names.old_values import READING, reads_bytes
from hookbridge.old_programs.names.syntax import called_method

# Method -> its name today.
METHODS = {
    "experimental_run_v2": "run",
    "export_savedmodel": "export_saved_model",
}
# (Method, old argument) -> its name today; empty for one that is left out.
ARGUMENTS = {
    ("add_update", "inputs"): "",
    ("add_meta_graph_and_variables", "legacy_init_op"): "main_op",
    ("add_meta_graph", "legacy_init_op"): "main_op",
    ("map", "num_threads"): "num_parallel_calls",
    ("map", "output_buffer_size"): "",
    **{
        (method, old): today
        for method, names in keras_arguments.OF_METHODS.items()
        for old, today in names.items()
    },
}
# Method -> the number of arguments without a name that it takes today.
_PLACES = {"add_update": 1}
# Function -> the arguments that it no longer takes, and the name of each today; empty
# for one that is left out. The methods of other libraries may have such arguments.
OF_FUNCTIONS: dict[str, dict[str, str]] = {
    "json.load": {"encoding": ""},
    "json.loads": {"encoding": ""},
    "numpy.corrcoef": {"bias": "", "ddof": ""},
    "numpy.histogram": {"normed": "density"},
    "numpy.histogram2d": {"normed": "density"},
    "numpy.histogramdd": {"normed": "density"},
    "numpy.linalg.matrix_rank": {"M": "A"},
    "numpy.nanpercentile": {"interpolation": "method"},
    "numpy.nanquantile": {"interpolation": "method"},
    "numpy.percentile": {"interpolation": "method"},
    "numpy.quantile": {"interpolation": "method"},
    "numpy.reshape": {"newshape": "shape"},
    "numpy.save": {"fix_imports": ""},
}
# Argument of `numpy.fromstring` -> that of `numpy.frombuffer`, which reads bytes.
_OF_BYTES = {"sep": "", "string": "buffer"}


def name_today(call: ast.Call, keyword: ast.keyword, function: str) -> str | None:
    """Return what an argument is called today.

    None if it has its name, empty if it was removed.

    Args:
      call: a call of a method, or of a function of a module.
      keyword: an argument of it.
      function: the dotted name of the function; empty for a method.
    """
    name = keyword.arg or ""
    if function == READING:
        return _OF_BYTES.get(name) if reads_bytes(call) else None
    if function in OF_FUNCTIONS:
        return OF_FUNCTIONS[function].get(name)
    if keras_arguments.class_of(function):
        return keras_arguments.name_today(function, keyword)
    return ARGUMENTS.get((called_method(call), name))


def surplus(call: ast.Call, function: str = "") -> list[ast.expr]:
    """Return the positional arguments that a function no longer takes."""
    number = _PLACES.get(called_method(call), len(call.args))
    return [*keras_arguments.sides(call, function)[1:], *call.args[number:]]


def is_second(call: ast.Call, keyword: ast.keyword, function: str) -> bool:
    """Return whether an argument is the shape of `reshape`, and needs no name.

    It has none that all supported versions of NumPy know.
    """
    is_shape = function == "numpy.reshape" and keyword.arg == "newshape"
    return is_shape and len(call.args) == 1 and keyword is call.keywords[0]


def becomes_prefetch(keyword: ast.keyword) -> bool:
    """Return whether a call of `prefetch` replaces a removed argument."""
    return keyword.arg == "output_buffer_size"
