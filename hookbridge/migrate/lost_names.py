"""Names that Python and NumPy had in TensorFlow 1's time, and what is there today."""

from __future__ import annotations

_ABSTRACT = (
    *("Callable", "Container", "Generator", "Hashable", "ItemsView", "Iterable"),
    *("Iterator", "KeysView", "Mapping", "MappingView", "MutableMapping"),
    *("MutableSequence", "MutableSet", "Sequence", "Set", "Sized", "ValuesView"),
)
# Name in NumPy -> the names that it had besides.
_NUMPY = {
    "inf": "Inf Infinity PINF infty",
    "nan": "NaN NAN",
    "float64": "float_",
    "complex128": "complex_",
    "str_": "unicode_",
    "bytes_": "string_",
    "prod": "product",
    "cumprod": "cumproduct",
    "all": "alltrue",
    "any": "sometrue",
}
# `np.bool` is none of them: NumPy 2 has it again.
LOST = {
    **{f"numpy.{name}": name for name in ("object", "int", "float", "complex", "str")},
    "numpy.unicode": "str",
    **{
        f"numpy.{name}": f"numpy.{today}"
        for today, names in _NUMPY.items()
        for name in names.split()
    },
    **{f"collections.{name}": f"collections.abc.{name}" for name in _ABSTRACT},
    "time.clock": "time.perf_counter",
}
# Functions that no other name of today stands for -> the way out.
FUNCTIONS = {
    "inspect.getargspec": "`inspect.getfullargspec`, which returns more values",
    "numpy.asscalar": "the array's method `item`",
}
# The modules that have lost names.
MODULES = frozenset(name.partition(".")[0] for name in (*LOST, *FUNCTIONS))


def today(name: str) -> str:
    """What is written today for a dotted name; empty if it is not lost."""
    module, _, rest = name.partition(".")
    first, dot, below = rest.partition(".")
    present = LOST.get(f"{module}.{first}", "")
    return f"{present}{dot}{below}" if present else ""
