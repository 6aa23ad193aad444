"""What a file uses of Keras 2 that Keras 3 refuses: methods, arguments, file names.

The names of modules, classes and functions are in data/keras-2.3.json.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping, Sequence

from hookbridge.old_programs.reading.one_file.keras_signs import Sign
from hookbridge.tf1_names.syntax import (
    called_method,
    keyword,
    keywords,
    last_name,
    text_of,
)

# The evidence of what says nothing without another name of Keras.
_KIND = "keras2_method"
# Methods of models and layers that Keras 3 no longer has.
_METHODS = frozenset(
    (
        "evaluate_generator",
        "fit_generator",
        "get_input_at",
        "get_input_shape_at",
        "get_output_at",
        "get_output_shape_at",
        "predict_generator",
    )
)
# Methods that models had until TensorFlow 2.1.
_PRIVATE = frozenset(f"_make_{kind}_function" for kind in ("predict", "test", "train"))
# Arguments that every layer took, and the classes that take them still.
_OF_LAYERS: dict[str, tuple[str, ...]] = {
    "batch_input_shape": (),
    "batch_size": ("Input", "InputLayer"),
    "weights": ("Embedding",),
}
_OF_CALLBACKS = {
    "ModelCheckpoint": {"period"},
    "TensorBoard": {
        "batch_size",
        "embeddings_data",
        "embeddings_layer_names",
        "write_grads",
    },
}
_OF_QUEUES = {"max_queue_size", "use_multiprocessing", "workers"}
_OF_METHODS = {
    "compile": {"sample_weight_mode", "target_tensors"},
    "evaluate": _OF_QUEUES,
    "fit": _OF_QUEUES,
    "predict": _OF_QUEUES,
    "test_on_batch": {"reset_metrics"},
    "train_on_batch": {"reset_metrics"},
}
_SHAPES = frozenset(("input_shape", "output_shape"))
# What names the file of a model.
_WRITING = {"ModelCheckpoint", "load_model", "save", "save_weights"}
# How the names of files with weights end in Keras 3, and in other libraries.
_OF_WEIGHTS = (".weights.h5", ".weights.json")
_OF_OTHERS = (".npy", ".npz", ".pickle", ".pkl", ".pt", ".pth")


def of_attribute(node: ast.Attribute) -> Iterator[Sign]:
    """Yield what an attribute of a model, layer or optimizer shows."""
    owner, attribute = node.value, node.attr
    of = last_name(owner)
    if attribute in _PRIVATE:
        yield "leftover", f".{attribute}()", node.lineno
    elif attribute in _METHODS or (attribute == "reset_states" and "model" in of):
        yield _KIND, f".{attribute}()", node.lineno
    elif attribute == "lr" and of == "optimizer":
        yield _KIND, "optimizer.lr", node.lineno
    elif attribute in _SHAPES and (of == "layer" or _is_layer(owner)):
        yield _KIND, f"layer.{attribute}", node.lineno


def _is_layer(node: ast.expr) -> bool:
    """Return whether it is `model.layers[i]` or `model.get_layer(...)`."""
    if isinstance(node, ast.Subscript):
        is_one = not isinstance(node.slice, ast.Slice)
        return is_one and last_name(node.value) == "layers"
    return isinstance(node, ast.Call) and called_method(node) == "get_layer"


def of_call(call: ast.Call, function: str) -> Iterator[Sign]:
    """Yield the arguments of a call that no function of this name takes in Keras 3.

    Args:
      call: any call.
      function: the dotted name of what is called; empty if it is not known.
    """
    names = keywords(call).keys()
    module, _, name = function.rpartition(".")
    refused: set[str] = set()
    if "keras" in module and ".layers" in module:
        refused = {one for one, still in _OF_LAYERS.items() if name not in still}
    elif "keras" in module:
        refused = _OF_CALLBACKS.get(name, set())
    elif not function:
        name = f".{called_method(call)}"
        refused = _OF_METHODS.get(name[1:], set())
        if name == ".add_weight" and call.args and text_of(call.args[0]):
            yield _KIND, ".add_weight() without name=", call.lineno
    kind = "keras2" if function else _KIND
    for argument in sorted(refused & names):
        yield kind, f"{function or name}({argument}=)", call.lineno


def of_files(nodes: Sequence[ast.AST]) -> Iterator[Sign]:
    """Yield the names of files that Keras 3 refuses, and their lines.

    It still writes models as `.h5`, and reads few of them.
    """
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    values: dict[str, ast.expr] | None = None
    for call in calls:
        if (function := last_name(call.func)) not in _WRITING:
            continue
        if values is None:
            values = _assigned(nodes)
        files = (*call.args[:1], *keyword(call, "filepath"))
        name = _end_of(files[0], values) if files else ""
        if name and not name.endswith(_OF_OTHERS) and _is_old_file(call, name):
            yield _KIND, f'{function}("{os.path.basename(name)}")', call.lineno


def _is_old_file(call: ast.Call, name: str) -> bool:
    """Return whether Keras 3 refuses the name of a file that a call writes or reads."""
    function = last_name(call.func)
    options = keyword(call, "save_weights_only")
    of_weights = any(getattr(option, "value", False) for option in options)
    if function == "save_weights" or of_weights:
        return not name.endswith(_OF_WEIGHTS)
    if function == "ModelCheckpoint":
        return not name.endswith(".keras")
    return name.endswith((".h5", ".hdf5"))


def _assigned(nodes: Sequence[ast.AST]) -> dict[str, ast.expr]:
    """Return the values that names get in a file, the last one of each."""
    return {
        target.id: node.value
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _end_of(node: ast.expr, values: Mapping[str, ast.expr], depth: int = 4) -> str:
    """Return how a string ends, by what stands in the file; empty if that is not known.

    Args:
      node: an expression.
      values: what the names in the file are.
      depth: how many further expressions may be looked at.
    """
    if text := text_of(node):
        return text
    last = _last_part(node, values) if depth else None
    return "" if last is None else _end_of(last, values, depth - 1)


def _last_part(node: ast.expr, values: Mapping[str, ast.expr]) -> ast.expr | None:
    """Return the expression with which the string of another one ends, or None."""
    match node:
        case ast.Name(id=name):
            return values.get(name)
        case ast.BinOp(op=ast.Mod(), left=template):
            return template
        case ast.BinOp(right=last):
            return last
        case ast.JoinedStr(values=[*_, last]):
            return last
        case ast.Call(func=ast.Attribute(attr="format", value=template)):
            return template
        case ast.Call(func=ast.Attribute(attr="join"), args=[*_, last]):
            return last
    return None
