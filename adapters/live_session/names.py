"""Which tensors a training step has, and what hooks may call them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from hookbridge import errors
from hookbridge.names import nearest

# What Keras adds to a scope's name when the name was taken.
_SUFFIX = re.compile(r"_\d+$")
# The scope of Keras 2's loop over several steps per execution.
_LOOP = re.compile(r"while(_\d+)?$")


class StepTensor(NamedTuple):
    """A tensor of the step that can be tapped.

    Attributes:
      key: how the tap asks for it: an alias such as `loss`, or the tensor's name
        in the graph of the step.
      dtype: its dtype.
      shape: its static shape, possibly unknown.
    """

    key: str
    dtype: Any
    shape: Any


def layer_names(model: Any) -> frozenset[str]:
    """The names of a model's layers at every depth, and its own."""
    return frozenset(str(x.name) for x in [model, *layers_of(model)])


def canonical(name: str, model_name: str, layers: frozenset[str]) -> str:
    """A tensor name of the step without what Keras made up.

    `"digits_1/hidden_1/Relu:0"` of the model `digits` is `"hidden/Relu:0"`: the
    scope of the model goes, and so does the `_N` that Keras appends to the scope of
    a layer whose name was used before.
    """
    op, _, index = name.partition(":")
    *scopes, last = op.split("/")
    known = []
    for scope in scopes:
        if _LOOP.match(scope) and scope not in layers:
            continue
        bare = _SUFFIX.sub("", scope)
        known.append(bare if scope not in layers and bare in layers else scope)
    if known and known[0] == model_name:
        known = known[1:]
    return f"{'/'.join([*known, last])}:{index or '0'}"


class StepNames:
    """The catalogue of one traced step.

    Names are tried in this order: an alias that hookbridge gives (`loss:0`, the
    metrics, `gradients/<variable>:0`); the tensor's own name in the step; its
    canonical name. The first tensor in the order of the trace wins, so that a
    layer's forward output comes before what the gradient makes of it.
    """

    def __init__(self, model: Any) -> None:
        self._model_name = str(getattr(model, "name", "model"))
        self._layers = layer_names(model)
        self.is_eager = False
        # Aliases of gradients that hold some rows only.
        self.of_rows: set[str] = set()
        self.aliases: dict[str, StepTensor] = {}
        self.traced: dict[str, StepTensor] = {}
        self._canonical: dict[str, StepTensor] = {}
        self._without_suffix: dict[str, StepTensor] = {}

    def add_alias(self, alias: str, dtype: Any, shape: Any) -> None:
        self.aliases.setdefault(f"{alias}:0", StepTensor(alias, dtype, shape))

    def add_traced(self, tensors: Iterable[Any]) -> None:
        for tensor in tensors:
            if tensor.dtype.name in ("resource", "variant"):
                continue
            item = StepTensor(tensor.name, tensor.dtype, tensor.shape)
            self.traced[tensor.name] = item
            name = self.canonical_name(tensor.name)
            self._canonical.setdefault(name, item)
            op, _, index = name.partition(":")
            self._without_suffix.setdefault(f"{_SUFFIX.sub('', op)}:{index}", item)

    def canonical_name(self, name: str) -> str:
        """See `canonical`."""
        return canonical(name, self._model_name, self._layers)

    def find(self, name: str) -> StepTensor | None:
        """The tensor that `name` (`"op:0"` or `"op"`) means, if there is one."""
        full = name if ":" in name else f"{name}:0"
        for table in (
            self.aliases,
            self.traced,
            self._canonical,
            self._without_suffix,
        ):
            if full in table:
                return table[full]
        return None

    def check_fed(self, keys: Iterable[str]) -> None:
        """Refuses feeds of what is no tensor in the step.

        Raises:
          errors.LiveSessionError: for such a feed.
        """
        for key in self.of_rows.intersection(keys):
            raise errors.LiveSessionError(
                f"`{key}` is the gradient of some rows only (`tf.IndexedSlices`), and "
                "cannot be fed as a whole. Feed the gradient of another variable, or "
                "change it in a `train_step` of the model."
            )

    def nearest(self, name: str, others: Iterable[str] = ()) -> list[str]:
        """Names that look like `name`, best first."""
        full = name if ":" in name else f"{name}:0"
        return nearest(full, [*others, *self.aliases, *self._canonical])


def eager_names(model: Any, names: StepNames) -> None:
    """Fills `names` for a step that runs eagerly, so that nothing is traced.

    What there is: the loss, the metrics, `<layer>/output:0` and, the same tensor,
    `<layer>/<Activation>:0`.
    """
    import tensorflow as tf

    names.is_eager = True
    any_shape = tf.TensorShape(None)
    names.add_alias("loss", tf.float32, any_shape)
    for metric in [*(m.name for m in model.metrics), *_compiled_metrics(model)]:
        names.add_alias(metric, tf.float32, any_shape)
    for layer in layers_of(model):
        dtype = tf.as_dtype(getattr(layer, "compute_dtype", None) or "float32")
        for alias in layer_aliases(layer):
            names.add_alias(alias, dtype, any_shape)


def _compiled_metrics(model: Any) -> list[str]:
    """What a step will return before Keras has made its metrics."""
    config: dict[str, Any] = getattr(model, "get_compile_config", dict)() or {}
    outputs = [str(name) for name in getattr(model, "output_names", None) or ()]
    if len(outputs) < 2:
        given = (config.get("metrics"), config.get("weighted_metrics"))
        return [name for metrics in given for name in _metric_names(metrics)]
    found = [f"{output}_loss" for output in outputs]
    for key in ("metrics", "weighted_metrics"):
        metrics = config.get(key) or ()
        if isinstance(metrics, Mapping):
            pairs = list(metrics.items())
        elif len(metrics) == len(outputs):
            pairs = list(zip(outputs, metrics, strict=True))
        else:  # Keras 2 gives every output all of them
            pairs = [(output, metrics) for output in outputs]
        found += [f"{o}_{name}" for o, m in pairs for name in _metric_names(m)]
    return found


def _metric_names(metrics: Any) -> list[str]:
    """Names of metrics as `compile` got them: strings, functions, objects, nested."""
    if isinstance(metrics, str):
        return [metrics]
    if isinstance(metrics, Mapping) and "class_name" in metrics:
        config = metrics.get("config")
        name = config.get("name") if isinstance(config, Mapping) else config
        return _metric_names(name)
    if isinstance(metrics, Mapping):
        metrics = list(metrics.values())
    if isinstance(metrics, (list, tuple)):
        return [name for metric in metrics for name in _metric_names(metric)]
    name = getattr(metrics, "name", None) or getattr(metrics, "__name__", None)
    return [name] if isinstance(name, str) else []


def layers_of(model: Any) -> list[Any]:
    """The layers of a model at every depth, without the model itself."""
    flatten = getattr(model, "_flatten_layers", None)
    found = flatten() if callable(flatten) else getattr(model, "layers", ())
    return [layer for layer in found if layer is not model]


def layer_aliases(layer: Any) -> list[str]:
    """The names of a layer's output in a step that runs eagerly."""
    aliases = [f"{layer.name}/output"]
    activation = getattr(getattr(layer, "activation", None), "__name__", "linear")
    if activation != "linear":
        camel = "".join(part.capitalize() for part in activation.split("_"))
        aliases.append(f"{layer.name}/{camel}")
    return aliases
