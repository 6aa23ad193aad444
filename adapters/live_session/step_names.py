"""Which tensors a training step has, and by which names hooks find them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from hookbridge import errors
from hookbridge.ground.texts.nearest_names import alike

# Keras appends this to the name of a scope if the name is taken.
_SUFFIX = re.compile(r"_\d+$")
# The scope of Keras 2's loop over several steps per execution.
_LOOP = re.compile(r"while(_\d+)?$")


# The prefix of the keys of a prediction's outputs.
OUTPUTS = "outputs/"


class StepTensor(NamedTuple):
    """A tensor of the step that can be fetched."""

    key: str  # a short key such as `loss`, or the tensor's name in the step's graph
    dtype: Any
    shape: Any


class StepNames:
    """The catalogue of one traced step.

    Names are tried in this order: a key that hookbridge gives (`loss:0`, a metric,
    `gradients/<variable>:0`); the tensor's name in the step; that name without what
    Keras made up; the same without the number at its end. The first tensor of the trace
    wins: the forward output of a layer.
    """

    def __init__(self, model_name: str, layers: Iterable[str] = ()) -> None:
        self._model_name = model_name
        self._layers = frozenset([model_name, *layers])
        self.is_eager = False  # then nothing is traced
        self.of_rows: set[str] = set()  # keys of gradients that hold some rows only
        # The ids of the learning-rate variables that the step reads; None for a step
        # that does not train or has not run.
        self.rates_read: set[int] | None = None
        # Names of the rates of other optimizers than `model.optimizer`.
        self.other_rate_names: list[str] = []
        self.loop_keys: dict[str, str] = {}  # of what a session loop would fetch
        self._short: dict[str, StepTensor] = {}
        self._traced: dict[str, StepTensor] = {}
        self._plain: dict[str, StepTensor] = {}
        self._unnumbered: dict[str, StepTensor] = {}

    @property
    def is_filled(self) -> bool:
        """Return whether the tensors of a trace have been entered."""
        return bool(self._traced)

    def add_short(self, key: str, dtype: object, shape: object) -> None:
        """Enter a tensor under a key that hookbridge gives.

        Args:
          key: the key, without `:0`, such as "loss".
          dtype: the type of the tensor.
          shape: its shape, as far as it is known.
        """
        self._short.setdefault(f"{key}:0", StepTensor(key, dtype, shape))

    def add_traced(self, tensors: Iterable[Any]) -> None:
        """Enter the tensors of the step's graph."""
        for tensor in tensors:
            if tensor.dtype.name in ("resource", "variant"):
                continue
            item = StepTensor(tensor.name, tensor.dtype, tensor.shape)
            self._traced[tensor.name] = item
            name = self._plain_name(tensor.name)
            self._plain.setdefault(name, item)
            op, _, index = name.partition(":")
            self._unnumbered.setdefault(f"{_SUFFIX.sub('', op)}:{index}", item)

    def _plain_name(self, name: str) -> str:
        """Return a tensor's name without what Keras made up."""
        # `"digits_1/hidden_1/Relu:0"` of the model `digits` becomes `"hidden/Relu:0"`:
        # this drops the scope of the model, and the `_N` that Keras appends to the
        # scope of a layer whose name was used before.
        op, _, index = name.partition(":")
        *scopes, leaf = op.split("/")
        parts = []
        for scope in scopes:
            if _LOOP.match(scope) and scope not in self._layers:
                continue
            bare = _SUFFIX.sub("", scope)
            is_numbered = scope not in self._layers and bare in self._layers
            parts.append(bare if is_numbered else scope)
        if parts and parts[0] == self._model_name:
            parts = parts[1:]
        return f"{'/'.join([*parts, leaf])}:{index or '0'}"

    def loop_tensors(self) -> list[tuple[str, StepTensor]]:
        """Return what a session loop would fetch in each step, with its names."""
        return [(n, self._short[f"{key}:0"]) for n, key in self.loop_keys.items()]

    def keys_below(self, prefix: str) -> list[str]:
        """Return the keys that hookbridge gives that begin with a prefix."""
        return [i.key for i in self._short.values() if i.key.startswith(prefix)]

    def find(self, name: str) -> StepTensor | None:
        """Return the step tensor that `name` (`"op:0"` or `"op"`) means, if any."""
        full = name if ":" in name else f"{name}:0"
        for table in (self._short, self._traced, self._plain, self._unnumbered):
            if full in table:
                return table[full]
        return None

    def find_again(self, key: str, tensors: Iterable[Any]) -> str | None:
        """Return the name of the step tensor `key` in another trace of the step.

        Args:
          key: its key in this trace.
          tensors: all tensors of the other trace.

        Returns:
          The key there; None if the other trace has no such tensor.
        """
        # Each function numbers its own scopes; so does the body of a loop.
        in_trace = StepNames(self._model_name, self._layers)
        in_trace.add_traced(tensors)
        item = in_trace.find(self._plain_name(key))
        return None if item is None else item.key

    def check_fed(self, keys: Iterable[str]) -> None:
        """Refuse feeds of tensors that the step cannot use."""
        for key in keys:
            if key.startswith(OUTPUTS):
                raise errors.LiveSessionError(
                    f"`{key}` is a result of the step, and nothing in the step is "
                    "computed from it. Feed a tensor that is computed before it.",
                    see="live session",
                )
        if of_rows := self.of_rows.intersection(keys):
            key = min(of_rows)
            raise errors.LiveSessionError(
                f"`{key}` is the gradient of some rows only (`tf.IndexedSlices`), and "
                "cannot be fed as a whole. Feed the gradient of another variable, or "
                "change it in a `train_step` of the model.",
                see="live session",
            )

    def no_tensor_error(
        self, e: KeyError, name: str, who: str, others: Iterable[str]
    ) -> errors.UnknownTensorError:
        """Return the error for a name that nothing has.

        Args:
          e: TensorFlow's own error.
          name: the name that was looked up.
          who: what could have made the tensor, for the message, such as "the graph".
          others: further names that may be meant.
        """
        full = name if ":" in name else f"{name}:0"
        if full == "learning_rate:0":
            rates = ", ".join(f"`{rate}`" for rate in self.other_rate_names)
            return errors.UnknownTensorError(
                f"{e.args[0]} `learning_rate:0` is the learning rate of "
                "`model.optimizer`, but the step does not read one. Constant rates "
                f"that it reads: {rates or 'none'}."
            )
        nearest = self._nearest(full, others)
        listed = ", ".join(f"`{name}`" for name in nearest)
        names = f"Nearest names: {listed}. " if nearest else ""
        return errors.UnknownTensorError(
            f"{e.args[0]} Neither {who} of this model nor a hook has made it. {names}A "
            "tensor of a layer is `<layer>/<Op>:0`; the loss is `loss:0`; a metric is "
            "`<metric>:0`."
        )

    def _nearest(self, full: str, others: Iterable[str]) -> list[str]:
        """Return the names that one that nothing has may mean."""
        choices = alike(full, [*others, *self._short, *self._plain])
        nearest = difflib.get_close_matches(full, choices, n=5, cutoff=0.75)
        scope, _, op = full.rpartition("/")
        if scope:
            # A tensor of a layer is meant: other ops of that layer may help, and the
            # same op in another layer.
            parts = {name: name.rpartition("/") for name in choices}
            same = [n for n, p in parts.items() if p[0] == scope or p[2] == op]
            return list(dict.fromkeys([*nearest, *same]))
        return nearest or [f"{key}:0" for key in self.loop_keys][:5]
