"""Manifests of Kubernetes: a TFJob of Kubeflow, or a JobSet."""

from __future__ import annotations

import json
from typing import Any

from hookbridge.ground.processes import exit_codes
from hookbridge.jobs.cluster_config.job_config import JOBS
from hookbridge.jobs.cluster_config.job_order import PORT, JobOrder, Replicas

# A TFJob's controller knows the container by this name.
_CONTAINER = "tensorflow"
_MODEL_VOLUME = "model"
# The label that nodes in the cloud have.
_MACHINE_LABEL = "node.kubernetes.io/instance-type"
_TFJOB_NAMES = dict(zip(JOBS, ("Chief", "Worker", "PS", "Evaluator"), strict=True))
# How often the pods of a Job may be started again after an exit code of 128 or above.
_RETRIES = 1000
_INDEX = "TASK_INDEX"
_INDEX_FIELD = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


def tfjob(order: JobOrder) -> dict[str, Any]:
    """Return a TFJob of Kubeflow's training operator 1, which sets `TF_CONFIG`.

    A process is started again if its exit code is 128 or above; any other one fails the
    job. The job has succeeded when the chief ends with 0. Then the operator ends what
    still runs, except in a job with an evaluator, which has to evaluate the last
    checkpoint. All processes of hookbridge's loops end by themselves.
    """
    cleans = "None" if order.numbers["evaluator"] else "Running"
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": order.name},
        "spec": {
            "runPolicy": {"cleanPodPolicy": cleans},
            "successPolicy": "",
            "tfReplicaSpecs": {
                _TFJOB_NAMES[replica.job]: {
                    "replicas": replica.number,
                    "restartPolicy": "ExitCode",
                    "template": {"spec": _pod(order, replica)},
                }
                for replica in order.replicas
            },
        },
    }


def jobset(order: JobOrder) -> dict[str, Any]:
    """Return a JobSet: one Job for each kind of task, and a `TF_CONFIG` for each pod.

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
                    "name": replica.job,
                    "replicas": 1,
                    "template": {"spec": _job(order, replica)},
                }
                for replica in order.replicas
            ],
        },
    }


def _job(order: JobOrder, replicas: Replicas) -> dict[str, Any]:
    """Return the template of a Job that restarts pods unless a code is permanent."""
    pod = _pod(order, replicas)
    pod["containers"][0]["env"] = [
        # First the index: Kubernetes fills in only variables above.
        {"name": _INDEX, "valueFrom": {"fieldRef": {"fieldPath": _INDEX_FIELD}}},
        {"name": "TF_CONFIG", "value": _tf_config(order, replicas.job)},
    ]
    permanent = {
        "containerName": _CONTAINER,
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
    """Return `TF_CONFIG` as a string into which Kubernetes writes the pod's index."""
    cluster = {
        replica.job: [
            f"{order.name}-{replica.job}-0-{index}.{order.name}:{PORT}"
            for index in range(replica.number)
        ]
        for replica in order.replicas
        if replica.job != "evaluator"
    }
    config = json.dumps({"cluster": cluster, "task": {"type": job, "index": 0}})
    return config.replace('"index": 0', f'"index": $({_INDEX})')


def _pod(order: JobOrder, replicas: Replicas) -> dict[str, Any]:
    """Return the `spec` of the pods of some tasks."""
    container: dict[str, Any] = {
        "name": _CONTAINER,
        "image": order.image,
        "command": list(order.command),
    }
    pod: dict[str, Any] = {
        "terminationGracePeriodSeconds": int(order.grace_secs),
        "containers": [container],
    }
    if replicas.node_type:
        pod["nodeSelector"] = {_MACHINE_LABEL: replicas.node_type}
    if replicas.gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": replicas.gpus}}
    if order.volume:
        claim, _, folder = order.volume.partition(":")
        container["volumeMounts"] = [{"name": _MODEL_VOLUME, "mountPath": folder}]
        source = {"persistentVolumeClaim": {"claimName": claim}}
        pod["volumes"] = [{"name": _MODEL_VOLUME, **source}]
    return pod
