"""A JobSet of plain Kubernetes: one Job for each kind of task."""

from __future__ import annotations

import json
from typing import Any

from hookbridge import exit_codes
from hookbridge.cluster_config.job_order import CONTAINER, PORT, JobOrder, Replicas

# How often the pods of a Job may be started again after an exit code of 128 or above.
_RETRIES = 1000
_INDEX = "TASK_INDEX"
_INDEX_FIELD = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


def manifest(order: JobOrder) -> dict[str, Any]:
    """The manifest; each pod has its own `TF_CONFIG`.

    A pod is started again if its exit code is 128 or above or its node was taken away;
    any other code fails the job. The job has succeeded when the chief, and the
    evaluator if there is one, have ended with 0; then all other pods are ended.
    """
    deciding = [r.job for r in order.replicas if r.job in ("chief", "evaluator")]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": order.name},
        "spec": {
            "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
            "successPolicy": {"operator": "All", "targetReplicatedJobs": deciding},
            "failurePolicy": {"maxRestarts": 0},
            "replicatedJobs": [
                {
                    "name": each.job,
                    "replicas": 1,
                    "template": {"spec": _job(order, each)},
                }
                for each in order.replicas
            ],
        },
    }


def _job(order: JobOrder, replicas: Replicas) -> dict[str, Any]:
    pod = order.pod(replicas)
    pod["containers"][0]["env"] = [
        # First the index: Kubernetes fills in only variables above.
        {"name": _INDEX, "valueFrom": {"fieldRef": {"fieldPath": _INDEX_FIELD}}},
        {"name": "TF_CONFIG", "value": _tf_config(order, replicas.job)},
    ]
    permanent = {
        "containerName": CONTAINER,
        "operator": "In",
        "values": list(range(1, exit_codes.RETRY_FROM)),
    }
    return {
        "completionMode": "Indexed",
        "completions": replicas.number,
        "parallelism": replicas.number,
        "backoffLimit": _RETRIES,
        "podFailurePolicy": {
            "rules": [
                {"action": "FailJob", "onExitCodes": permanent},
                {
                    "action": "Ignore",  # a node that was taken away counts as no retry
                    "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
                },
            ]
        },
        "template": {"spec": {"restartPolicy": "Never", **pod}},
    }


def _tf_config(order: JobOrder, job: str) -> str:
    cluster = {
        each.job: [
            f"{order.name}-{each.job}-0-{index}.{order.name}:{PORT}"
            for index in range(each.number)
        ]
        for each in order.replicas
        if each.job != "evaluator"
    }
    config = json.dumps({"cluster": cluster, "task": {"type": job, "index": 0}})
    return config.replace('"index": 0', f'"index": $({_INDEX})')
