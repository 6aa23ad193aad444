"""The frameworks that the ports of these tests are written in."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import numpy as np
from real_ports import NumPyOptimizer, Port, clipped
from small_autodiff import NumPy


class InNumPy(NumPy):
    """NumPy alone, with the update rules of TensorFlow 1."""

    def optimizer(self, port: Port, arrays: dict[str, Any]) -> Any:
        return NumPyOptimizer(port, arrays, self.array)


class InKeras(NumPy):
    """Keras's optimizers, with their own epsilons."""

    def __init__(self, keras: Any) -> None:
        self._keras = keras

    def optimizer(self, port: Port, arrays: dict[str, Any]) -> Any:
        return _KerasOptimizer(self._keras, port, arrays, self.array)


class _KerasOptimizer:
    def __init__(
        self, keras: Any, port: Port, arrays: dict[str, Any], array: Any
    ) -> None:
        self._port, self._array = port, array
        variable = getattr(keras, "Variable", None) or _tf_variable()
        self._values = {
            n: variable(v, name=n.replace("/", "_")) for n, v in arrays.items()
        }
        options, make = port.options, keras.optimizers
        self._optimizer = {
            "adam": lambda: make.Adam(0.1, 0.9, options.get("beta2", 0.999)),
            "sgd": lambda: make.SGD(0.1, options.get("momentum", 0.0)),
            "adagrad": lambda: make.Adagrad(0.1, options.get("initial", 0.1)),
        }[port.optimizer]()

    @property
    def variables(self) -> dict[str, Any]:
        return {name: self._array(v) for name, v in self.arrays().items()}

    def arrays(self) -> dict[str, Any]:
        return {name: v.numpy() for name, v in self._values.items()}

    def step(self, found: dict[str, Any], rate: float) -> None:
        import tensorflow as tf

        found = clipped(found, self._port.clip)
        self._optimizer.learning_rate = rate
        self._optimizer.apply_gradients(
            [
                (tf.constant(found[name], tf.float32), variable)
                for name, variable in self._values.items()
            ]
        )


def _tf_variable() -> Any:
    import tensorflow as tf

    return tf.Variable


class InTorch:
    """PyTorch, with its gradients and its optimizers."""

    def __init__(self) -> None:
        self._torch: Any = importlib.import_module("torch")

    def optimizer(self, port: Port, arrays: dict[str, Any]) -> Any:
        return _TorchOptimizer(self._torch, port, arrays)

    def array(self, x: Any) -> Any:
        torch = self._torch
        return x if torch.is_tensor(x) else torch.tensor(np.asarray(x, "float32"))

    def relu(self, x: Any) -> Any:
        return self._torch.relu(x)

    def leaky(self, x: Any, slope: float) -> Any:
        return self._torch.nn.functional.leaky_relu(x, slope)

    def tanh(self, x: Any) -> Any:
        return self._torch.tanh(x)

    def sigmoid(self, x: Any) -> Any:
        return self._torch.sigmoid(x)

    def log(self, x: Any) -> Any:
        return self._torch.log(x)

    def exp(self, x: Any) -> Any:
        return self._torch.exp(x)

    def sqrt(self, x: Any) -> Any:
        return self._torch.sqrt(x)

    def sum(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return x.sum() if axis is None else x.sum(axis, keepdim=keepdims)

    def reshape(self, x: Any, shape: Any) -> Any:
        return x.reshape(shape)

    def transpose(self, x: Any, axes: Any) -> Any:
        return x.permute(axes)

    def concat(self, values: list[Any], axis: int) -> Any:
        return self._torch.cat(values, axis)

    def numpy(self, x: Any) -> Any:
        return x.detach().numpy()

    def gradients(self, loss: Any, of: dict[str, Any]) -> dict[str, Any]:
        found = self._torch.autograd.grad(loss, list(of.values()))
        return dict(zip(of, found, strict=True))


class _TorchOptimizer:
    def __init__(self, torch: Any, port: Port, arrays: dict[str, Any]) -> None:
        self._torch, self._port = torch, port
        self.variables = {
            name: torch.nn.Parameter(torch.tensor(np.asarray(v, "float32")))
            for name, v in arrays.items()
        }
        options, make = port.options, torch.optim
        parameters, l2 = list(self.variables.values()), options.get("l2", 0.0)
        self._optimizer = {
            "adam": lambda: make.Adam(
                parameters,
                betas=(0.9, options.get("beta2", 0.999)),
                eps=options.get("epsilon", 1e-8),
                amsgrad=options.get("amsgrad", False),
            ),
            "sgd": lambda: make.SGD(
                parameters,
                lr=0.1,
                momentum=options["momentum"],
                nesterov=options.get("nesterov", False),
            ),
            "adagrad": lambda: make.Adagrad(
                parameters,
                initial_accumulator_value=options["initial"],
                weight_decay=l2,
            ),
        }[port.optimizer]()

    def arrays(self) -> dict[str, Any]:
        return {n: v.detach().numpy().copy() for n, v in self.variables.items()}

    def step(self, found: dict[str, Any], rate: float) -> None:
        for name, variable in self.variables.items():
            variable.grad = found[name].clone()
        kind, limit = self._port.clip
        utils = self._torch.nn.utils
        parameters = list(self.variables.values())
        if kind == "value":
            utils.clip_grad_value_(parameters, limit)
        elif kind:
            groups = (
                [parameters] if kind == "global norm" else [[p] for p in parameters]
            )
            for group in groups:
                utils.clip_grad_norm_(group, limit)
        (group,) = self._optimizer.param_groups
        group["lr"] = rate
        with self._torch.no_grad():
            for name, decay in self._port.decay.items():
                self.variables[name].mul_(1 - rate * decay)
        self._optimizer.step()


# PyTorch where it is installed.
FRAMEWORKS = ["numpy"] + ["torch"] * (importlib.util.find_spec("torch") is not None)


def framework(name: str) -> Any:
    return InNumPy() if name == "numpy" else InTorch()
