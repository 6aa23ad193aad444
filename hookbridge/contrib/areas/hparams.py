"""`tf.contrib.training.HParams`: hyperparameters that a string can override."""

from __future__ import annotations

import json
import numbers
import re
from collections.abc import Mapping
from typing import Any

# A name, and a value or a list of values.
_PAIR = re.compile(
    r"\s*(?P<name>[a-zA-Z][\w\.]*)\s*=\s*"
    r"((?P<value>[^,\[]*)|\[(?P<values>[^\]]*)\])(,|$)"
)


def parse_values(
    values: str, type_map: Mapping[str, type], ignore_unknown: bool = False
) -> dict[str, Any]:
    """Read `name=value,list=[1,2]`; `type_map` has the type of a list's elements."""
    parsed: dict[str, Any] = {}
    position = 0
    while position < len(values):
        match = _PAIR.match(values, position)
        if match is None:
            raise ValueError(f"Malformed hyperparameter value: {values[position:]}")
        position, name = match.end(), match["name"]
        if name not in type_map:
            if ignore_unknown:
                continue
            raise ValueError(f"Unknown hyperparameter type for {name}")
        if name in parsed:
            raise ValueError(f"Multiple assignments to variable '{name}' in {values}")
        kind = type_map[name]
        if match["values"] is None:
            parsed[name] = _parse_value(name, kind, match["value"], values)
        else:
            words = filter(None, re.split(r"[ ,]", match["values"]))
            parsed[name] = [_parse_value(name, kind, word, values) for word in words]
    return parsed


def _parse_value(name: str, kind: type, word: str, values: str) -> Any:
    """Return a value of a hyperparameter, read as its type is."""
    try:
        if kind is bool:
            booleans = {"true": True, "True": True, "false": False, "False": False}
            return booleans[word] if word in booleans else bool(int(word))
        return kind(word)
    except ValueError:
        raise ValueError(
            f"Could not parse hyperparameter '{name}' of type '{kind.__name__}' with "
            f"value '{word}' in {values}"
        ) from None


class HParams:
    """Hyperparameters as attributes; each keeps the type of its first value."""

    def __init__(
        self, hparam_def: object = None, model_structure: object = None, **kwargs: Any
    ) -> None:
        if hparam_def is not None or model_structure is not None:
            raise ValueError(
                "Received `hparam_def` or `model_structure`; expected names and "
                "values alone: TensorFlow has removed HParamDef."
            )
        self._hparam_types: dict[str, tuple[type, bool]] = {}
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Add a hyperparameter of a new name."""
        if getattr(self, name, None) is not None:
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        is_list = isinstance(value, list | tuple)
        self._hparam_types[name] = (type(value[0] if is_list else value), is_list)
        setattr(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Set a hyperparameter that exists, to a value of its type."""
        kind, is_list = self._hparam_types[name]
        if isinstance(value, list) != is_list:
            expected = "Must pass" if is_list else "Must not pass"
            form = "multi" if is_list else "single"
            raise ValueError(f"{expected} a list for {form}-valued parameter: {name}")
        if is_list:
            cast = [_cast(name, kind, element) for element in value]
        else:
            cast = _cast(name, kind, value)
        setattr(self, name, cast)

    def del_hparam(self, name: str) -> None:
        """Remove a hyperparameter, if it exists."""
        if hasattr(self, name):
            delattr(self, name)
            del self._hparam_types[name]

    def parse(self, values: str) -> HParams:
        """Override values with those of a string; see `parse_values`."""
        types = {name: kind for name, (kind, _) in self._hparam_types.items()}
        return self.override_from_dict(parse_values(values, types))

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> HParams:
        """Override values with those of a dict."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    set_from_map = override_from_dict

    def parse_json(self, values_json: str) -> HParams:
        """Override values with those of a JSON object."""
        return self.override_from_dict(json.loads(values_json))

    def to_json(
        self,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        """Return the values as a JSON object."""
        return json.dumps(
            self.values(), indent=indent, separators=separators, sort_keys=sort_keys
        )

    def values(self) -> dict[str, Any]:
        """Return names and values."""
        return {name: getattr(self, name) for name in self._hparam_types}

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of `key`, or the default."""
        return self.values().get(key, default)

    def __contains__(self, key: str) -> bool:
        return key in self._hparam_types

    def __str__(self) -> str:
        return ",".join(f"{name}={value}" for name, value in self.values().items())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({sorted(self.values().items())})"


def _cast(name: str, kind: type, value: object) -> Any:
    """Return the value, cast to its hyperparameter's type if the cast loses nothing."""
    failure = f"Could not cast hparam '{name}' of type '{kind}' from value {value!r}"
    if kind is type(None):
        return value
    kinds: tuple[Any, ...] = ((str, bytes), bool, numbers.Integral)
    accepted = next((k for k in kinds if issubclass(kind, k)), numbers.Number)
    if not isinstance(value, accepted) or (
        isinstance(value, bool) and kind is not bool
    ):
        raise ValueError(failure)
    return kind(value)
