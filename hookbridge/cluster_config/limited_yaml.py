"""Reads small files of YAML that anybody may have written."""

from __future__ import annotations

import os
from typing import Any

from hookbridge import errors, extras
from hookbridge.arguments import why_no_file

MOST_BYTES, MOST_DEPTH = 100_000, 20


def read(path: str) -> Any:
    """The value of a file; what `job_config` never needs is refused.

    That is what makes a parser hang, or one file mean two things: aliases, deep
    nesting, huge files and numbers, and a key that comes twice.
    """
    yaml = extras.load("yaml", "Reading a `config.yaml`")
    if not os.path.isfile(path):
        raise errors.InvalidArgumentError(
            f"Received --config={path!r}, which {why_no_file(path)}; expected a YAML "
            "file."
        )
    with open(path, "rb") as file:
        text = file.read(MOST_BYTES + 1)
    if len(text) > MOST_BYTES:
        raise errors.InvalidArgumentError(
            f"{path} has more than {MOST_BYTES} bytes; expected a few keys such as "
            "`scaleTier: CUSTOM`."
        )

    class Loader(yaml.SafeLoader):  # type: ignore[misc, name-defined]
        """Refuses a repeated key: YAML's own keeps the last value."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            names: set[str] = set()
            for key, _ in node.value:
                if str(key.value) in names:
                    raise _problem(yaml, f"the key `{key.value}` comes twice", key)
                names.add(str(key.value))
            return super().construct_mapping(node, deep)

    try:
        _check_structure(yaml, text)
        return yaml.load(text, Loader)
    except (yaml.YAMLError, ValueError) as e:  # no date, no text, too many digits
        mark = getattr(e, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise errors.InvalidArgumentError(
            f"{path}{line} is no YAML: {getattr(e, 'problem', None) or e}"
        ) from e


def _check_structure(yaml: Any, text: bytes) -> None:
    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.AliasEvent):
            raise _problem(yaml, "it has an alias; write the value out", event)
        if depth > MOST_DEPTH:
            raise _problem(yaml, f"it is nested deeper than {MOST_DEPTH} levels", event)


def _problem(yaml: Any, problem: str, place: Any) -> Any:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=place.start_mark)
