"""Reads the `config.yaml` of an AI-Platform-style training job."""

from __future__ import annotations

import functools
import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hookbridge import errors
from hookbridge.ground.arguments import shown, why_no_file
from hookbridge.ground.imports import extras
from hookbridge.ground.texts.nearest_names import suggestion

JOBS = ("chief", "worker", "ps", "evaluator")
_TYPES = ("masterType", "workerType", "parameterServerType", "evaluatorType")
_COUNTS = ("workerCount", "parameterServerCount", "evaluatorCount")
# Known keys that are ignored: they describe the cloud, or how it starts the program.
_OTHERS = (
    "runtimeVersion",
    "pythonVersion",
    "region",
    "jobDir",
    "packageUris",
    "pythonModule",
    "args",
    "labels",
    "scheduling",
    "network",
    "serviceAccount",
)
_MOST = 1000
_TYPE = re.compile(r"[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")


def read_config(path: str) -> tuple[dict[str, int], dict[str, str]]:
    """Return the numbers of tasks of the jobs in a `config.yaml`, and the machines.

    The keys may be below `trainingInput`.
    """
    value = _read(path)
    keys = ("scaleTier", *_TYPES, *_COUNTS, *_OTHERS)
    for key in value:
        if key not in keys:
            listed = f"; expected one of: {', '.join(keys)}"
            expected = suggestion(key, keys) or listed
            raise errors.InvalidArgumentError(
                f"{path}: the key `{key}` is not known{expected}."
            )
    check = functools.partial(_check, path, value)
    counts = [_count(path, value, key) for key in _COUNTS]
    workers, servers, evaluators = counts
    check(
        "scaleTier",
        value.get("scaleTier") in (None, "CUSTOM"),
        "CUSTOM, with `masterType` and the number and type of the others",
    )
    for key, is_needed in zip(_TYPES, (True, *counts), strict=True):
        is_type = _TYPE.fullmatch(value.get(key, "")) or not (is_needed or key in value)
        check(key, is_type, "a machine type such as `n1-standard-4`")
    check(
        "parameterServerCount",
        servers or not workers,
        "at least one: workers share their variables through parameter servers",
    )
    check(
        "evaluatorCount",
        evaluators < 2,
        "0 or 1: each evaluator evaluates every checkpoint",
    )
    types = (value.get(key, "") for key in _TYPES)
    numbers = dict(zip(JOBS, (1, *counts), strict=True))
    return numbers, dict(zip(JOBS, types, strict=True))


def _read(path: str) -> dict[str, str]:
    """Return the keys of a file and their text; of a list or a mapping it is empty.

    Anybody may have written the file: no value is made, so no alias can make it huge.
    """
    yaml = extras.load("yaml", "Reading a `config.yaml`")
    if not os.path.isfile(path):
        raise errors.InvalidArgumentError(
            f"Received --config={path!r}, which {why_no_file(path)}; expected a YAML "
            "file."
        )
    try:
        node = yaml.compose(Path(path).read_bytes(), yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError) as e:
        mark = getattr(e, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise errors.InvalidArgumentError(
            f"{path}{line} is not YAML: {getattr(e, 'problem', None) or e}"
        ) from e
    nodes: dict[str, Any] = {}
    for key in ("", "trainingInput"):
        node = nodes.get(key, node)
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        nodes = {str(name.value): value for name, value in pairs} or nodes
        if len(nodes) < len(pairs):
            names = Counter(str(name.value) for name, _ in pairs)
            raise errors.InvalidArgumentError(
                f"{path} has the key `{names.most_common(1)[0][0]}` more than once; "
                "expected each key once."
            )
    if not nodes:
        raise errors.InvalidArgumentError(
            f"{path} has no keys; expected keys such as `scaleTier: CUSTOM` and "
            "`masterType: n1-standard-4`."
        )
    texts = {k: v.value for k, v in nodes.items() if isinstance(v, yaml.ScalarNode)}
    return {**dict.fromkeys(nodes, ""), **texts}


def _check(
    path: str, value: Mapping[str, str], key: str, is_good: object, expected: str
) -> None:
    if not is_good:
        raise errors.InvalidArgumentError(
            f"{path}: `{key}` is {shown(value.get(key))}; expected {expected}."
        )


def _count(path: str, value: Mapping[str, str], key: str) -> int:
    text = value.get(key, "0")
    number = int(text) if text.isdecimal() and len(text) < 10 else _MOST + 1
    _check(path, value, key, number <= _MOST, f"an integer from 0 to {_MOST}")
    return number
