"""Reads the `config.yaml` of an AI-Platform-style training job."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hookbridge import errors, extras
from hookbridge.arguments import shown, why_no_file
from hookbridge.names import nearest

_TYPES = ("masterType", "workerType", "parameterServerType", "evaluatorType")
_COUNTS = ("workerCount", "parameterServerCount", "evaluatorCount")
# Known keys that are ignored: they describe the cloud, or how it starts the program.
_OTHERS = (
    *("runtimeVersion", "pythonVersion", "region", "jobDir", "packageUris"),
    *("pythonModule", "args", "labels", "scheduling", "network", "serviceAccount"),
)
_MOST = 1000
_MOST_BYTES, _MOST_DEPTH = 100_000, 20
_TYPE = re.compile(r"[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True)
class JobConfig:
    """The machines of a job."""

    master_type: str = ""
    worker_type: str = ""
    server_type: str = ""
    evaluator_type: str = ""
    workers: int = 0
    servers: int = 0
    evaluators: int = 0


def read_config(path: str) -> JobConfig:
    """Reads a `config.yaml`, whose keys may be below `trainingInput`."""
    return _job(path, _read(path))


def _read(path: str) -> Any:
    """The value of a file that anybody may have written.

    Refused is what no job needs and what makes a parser hang, or one file mean two
    things: aliases, deep nesting, huge files and numbers, and a key that comes twice.
    """
    yaml = extras.load("yaml", "Reading a `config.yaml`")
    if not os.path.isfile(path):
        raise errors.InvalidArgumentError(
            f"Received --config={path!r}, which {why_no_file(path)}; expected a YAML "
            "file."
        )
    with open(path, "rb") as file:
        text = file.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise errors.InvalidArgumentError(
            f"{path} has more than {_MOST_BYTES} bytes; expected a few keys such as "
            "`scaleTier: CUSTOM`."
        )

    class Loader(yaml.SafeLoader):  # type: ignore[misc, name-defined]
        """Refuses what YAML's own loader accepts."""

        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            place = self.peek_event().start_mark
            if self.check_event(yaml.AliasEvent):
                self.refuse("it has an alias; write the value out", place)
            if self.depth > _MOST_DEPTH:
                self.refuse(f"it is nested deeper than {_MOST_DEPTH} levels", place)
            self.depth += 1
            node = super().compose_node(parent, index)
            self.depth -= 1
            names: set[str] = set()
            for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
                if str(key.value) in names:
                    self.refuse(f"the key `{key.value}` comes twice", key.start_mark)
                names.add(str(key.value))
            return node

        def refuse(self, problem: str, place: Any) -> None:
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=place)

    try:
        return yaml.load(text, Loader)
    except (yaml.YAMLError, ValueError) as e:  # no date, no text, too many digits
        mark = getattr(e, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise errors.InvalidArgumentError(
            f"{path}{line} is no YAML: {getattr(e, 'problem', None) or e}"
        ) from e


def _job(path: str, value: Any) -> JobConfig:
    if isinstance(value, Mapping) and "trainingInput" in value:
        value = value["trainingInput"]
    if not isinstance(value, Mapping):
        raise errors.InvalidArgumentError(
            f"{path} holds {shown(value)}; expected keys such as `scaleTier: CUSTOM` "
            "and `masterType: n1-standard-4`."
        )
    keys = ("scaleTier", *_TYPES, *_COUNTS, *_OTHERS)
    for key in value:
        if key not in keys:
            near = ", ".join(f"`{n}`" for n in nearest(str(key), keys))
            raise errors.InvalidArgumentError(
                f"{path}: the key `{key}` is not known; the nearest: {near}."
            )
    tier = value.get("scaleTier", "CUSTOM")
    if tier != "CUSTOM":
        raise errors.InvalidArgumentError(
            f"{path}: `scaleTier` is {shown(tier)}; expected CUSTOM, with `masterType` "
            "and the number and type of the other machines."
        )
    counts = [_count(path, key, value.get(key, 0)) for key in _COUNTS]
    types = [value.get(key, "") for key in _TYPES]
    needed = (True, *(count > 0 for count in counts))
    for key, kind, is_needed in zip(_TYPES, types, needed, strict=True):
        if not isinstance(kind, str) or not _is_type(kind, is_needed):
            raise errors.InvalidArgumentError(
                f"{path}: `{key}` is {shown(kind or None)}; expected a machine type "
                "such as `n1-standard-4`."
            )
    if counts[0] and not counts[1]:
        raise errors.InvalidArgumentError(
            f"{path}: `workerCount` is {counts[0]} and `parameterServerCount` is 0; "
            "expected at least one: workers share their variables through parameter "
            "servers."
        )
    if counts[2] > 1:
        raise errors.InvalidArgumentError(
            f"{path}: `evaluatorCount` is {counts[2]}; expected 0 or 1: each evaluator "
            "evaluates every checkpoint."
        )
    return JobConfig(*types, *counts)


def _is_type(name: str, is_needed: bool) -> bool:
    """Whether a name can be that of a machine type."""
    return bool(_TYPE.fullmatch(name)) if name else not is_needed


def _count(path: str, key: str, value: Any) -> int:
    # AI Platform writes numbers as strings too.
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        value = int(value)
    good = isinstance(value, int) and not isinstance(value, bool)
    if not good or not 0 <= value <= _MOST:
        raise errors.InvalidArgumentError(
            f"{path}: `{key}` is {shown(value)}; expected an integer from 0 to {_MOST}."
        )
    return int(value)
