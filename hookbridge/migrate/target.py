"""The public names of a TensorFlow, from a list; TensorFlow is not imported."""

from __future__ import annotations

import functools
import json
from pathlib import Path

from hookbridge import errors

DATA = Path(__file__).with_name("data")
NEWEST = "2.21"
_V1 = "compat.v1"


@functools.cache
def versions() -> tuple[str, ...]:
    """The TensorFlow versions whose names are known, oldest first."""
    names = [path.stem.partition("-")[2] for path in DATA.glob("tensorflow-*.json")]
    return tuple(sorted(names, key=lambda v: [int(n) for n in v.split(".")]))


@functools.cache
def _modules(version: str) -> dict[str, dict[str, list[str] | None]]:
    """For tf and tf.compat.v1: module -> its names, or None if they are not known."""
    text = (DATA / f"tensorflow-{version}.json").read_text("utf-8")
    modules: dict[str, dict[str, list[str] | None]] = json.loads(text)
    return modules


class Target:
    """A TensorFlow that code has to run on."""

    def __init__(self, version: str) -> None:
        if version not in versions():
            raise errors.InvalidArgumentError(
                f"Received the target {version!r}; expected one of "
                f"{', '.join(versions())}."
            )
        self.version = version
        self._modules = _modules(version)

    def has(self, name: str) -> bool:
        """Whether this TensorFlow has a canonical name (`tf.X`, `tf.compat.v1.X`).

        What follows the first class or function in the name is ignored: attributes of
        classes and functions are not listed.
        """
        rest = name.partition(".")[2]
        table = self._modules["v2"]
        if rest == _V1 or rest.startswith(f"{_V1}."):
            rest, table = rest[len(_V1) + 1 :], self._modules["v1"]
        module = ""
        for part in rest.split(".") if rest else ():
            names = table.get(module, ())
            if names is None:
                return True
            if part not in names and not part.startswith("__"):
                return False
            module = f"{module}.{part}" if module else part
            if module not in table:
                return True
        return True

    def names(self, module: str) -> list[str]:
        """The names of a module, such as `tf.compat.v1.train`; empty if not listed."""
        rest, table = module.partition(".")[2], self._modules["v2"]
        if rest == _V1 or rest.startswith(f"{_V1}."):
            rest, table = rest[len(_V1) + 1 :], self._modules["v1"]
        return table.get(rest) or []

    @property
    def has_estimator(self) -> bool:
        """Whether this TensorFlow has Estimator; it has Keras 2 as `tf.keras` then."""
        return self.has("tf.estimator")

    def has_v1(self, name: str) -> bool:
        """Whether this TensorFlow has `tf.X` as `tf.compat.v1.X`."""
        return self.has(name.replace("tf.", f"tf.{_V1}.", 1))
