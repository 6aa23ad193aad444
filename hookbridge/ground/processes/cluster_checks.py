"""Checks of the cluster and the task in `TF_CONFIG`; errors name the key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hookbridge import errors
from hookbridge.ground.arguments import shown

CHIEF_TYPES = ("chief", "master")
SERVER_TYPES = (*CHIEF_TYPES, "worker", "ps")
# An evaluator talks to nobody: it may be left out of the cluster it evaluates.
TASK_TYPES = (*SERVER_TYPES, "evaluator")
# A host name, an IPv4 address, or an IPv6 address in brackets; then the port.
_ADDRESS = re.compile(r"(?:[^\s/:\[\]]+|\[[0-9A-Za-z:.%]+\]):([0-9]{1,5})")
_LAST_PORT = 65_535
_EXAMPLE = (
    '{"cluster": {"chief": ["host0:2222"], "worker": ["host1:2222"], '
    '"ps": ["host2:2222"]}, "task": {"type": "worker", "index": 0}}'
)


def check_cluster(
    value: object, key: str = "TF_CONFIG['cluster']"
) -> dict[str, tuple[str, ...]]:
    """Return the addresses of each job of a cluster, which messages call `key`."""
    if not isinstance(value, Mapping) or not value:
        raise wrong(key, value, "an object of jobs, `{job: [addresses]}`")
    for job in value:
        if job not in TASK_TYPES:
            raise errors.InvalidArgumentError(
                f"{key} has the job {shown(job)}; expected jobs out of "
                f"{', '.join(TASK_TYPES)}."
            )
    cluster = check_addresses(value, {job: f"{key}['{job}']" for job in value})
    chiefs = [job for job in CHIEF_TYPES for _ in cluster.get(job, ())]
    if len(chiefs) > 1:
        raise errors.InvalidArgumentError(
            f"{key} has {len(chiefs)} chiefs ({', '.join(chiefs)}); expected at most "
            "one. Make the others workers."
        )
    return cluster


def check_addresses(
    value: Mapping[Any, Any], names: Mapping[Any, str], example: str = ""
) -> dict[str, tuple[str, ...]]:
    """Return the addresses of each job, all different.

    Args:
      value: job -> what was given as its list of `host:port`.
      names: job -> what messages call the list.
      example: a correct one, for messages.

    Raises:
      errors.InvalidArgumentError: a list is empty, has what is not an address, or has
        an address twice.
    """
    owners: dict[str, str] = {}
    for job, hosts in value.items():
        name = names[job]
        if not isinstance(hosts, (list, tuple)) or not hosts:
            expected = 'a list of addresses such as `["host:2222"]`'
            raise wrong(name, hosts, expected, example)
        for address in hosts:
            if not _is_address(address):
                raise wrong(
                    name,
                    address,
                    f"an address `host:port` with a port from 1 to {_LAST_PORT}, "
                    "without a scheme, and IPv6 in brackets",
                    example,
                )
            if address in owners:
                raise errors.InvalidArgumentError(
                    f"{name} and {owners[address]} have the same address "
                    f"{address!r}; expected a different address for each task."
                )
            owners[address] = name
    return {job: tuple(hosts) for job, hosts in value.items()}


def _is_address(value: object) -> bool:
    match = _ADDRESS.fullmatch(value) if isinstance(value, str) else None
    return match is not None and 1 <= int(match[1]) <= _LAST_PORT


def strict_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; refuse a repeated key, of which `json` keeps the last."""
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"it has the key {key!r} twice in one object")
        result[key] = value
    return result


def check_task(
    value: object,
    cluster: Mapping[str, tuple[str, ...]],
    keys: tuple[str, str] = ("TF_CONFIG['task']", "TF_CONFIG['cluster']"),
) -> tuple[str, int]:
    """Return a task's type and index; `keys` are what messages call the entries."""
    key, source = keys
    if not isinstance(value, dict):
        raise wrong(key, value, 'an object `{"type": ..., "index": ...}`')
    kind, index = value.get("type"), value.get("index")
    if not isinstance(kind, str) or kind not in TASK_TYPES:
        raise wrong(f"{key}['type']", kind, f"one of {', '.join(TASK_TYPES)}")
    if kind not in cluster and kind != "evaluator":
        raise errors.InvalidArgumentError(
            f"{key}['type'] is {shown(kind)}, which {source} does not have; "
            f"expected one of its jobs: {', '.join(cluster)}."
        )
    index = _index(index, f"{key}['index']")
    tasks = len(cluster.get(kind, ()))
    if kind in cluster and index >= tasks:
        raise errors.InvalidArgumentError(
            f"{key}['index'] is {shown(index)}; expected less than {tasks}, the number "
            f"of {shown(kind)} tasks in {source}."
        )
    return kind, index


def _index(value: object, key: str) -> int:
    """Return an index as a number: schedulers write numbers as strings."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise wrong(key, value, "an integer of at least 0")
    return value


def wrong(
    key: str, value: object, expected: str, example: str = ""
) -> errors.InvalidArgumentError:
    """Return the error for a bad value.

    Args:
      key: where the value is, such as `TF_CONFIG["task"]["index"]`.
      value: what was received.
      expected: what had to be there.
      example: the end of the message; by default an example of `TF_CONFIG`.
    """
    return errors.InvalidArgumentError(
        f"{key} is {shown(value)}; expected {expected}. "
        + (example or f"For example {_EXAMPLE}.")
    )
