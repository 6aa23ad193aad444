"""A TFJob of Kubeflow's training operator, version 1."""

from __future__ import annotations

from typing import Any

from hookbridge.cluster_config.job_order import JobOrder

_NAMES = {"chief": "Chief", "worker": "Worker", "ps": "PS", "evaluator": "Evaluator"}


def manifest(order: JobOrder) -> dict[str, Any]:
    """The manifest; the operator sets `TF_CONFIG` in each pod.

    A process is started again if its exit code is 128 or above; any other one fails the
    job. The job has succeeded when the chief ends with 0. Then the operator ends what
    still runs, except in a job with an evaluator, which has to evaluate the last
    checkpoint. All processes of hookbridge's loops end by themselves.
    """
    cleans = "None" if order.config.evaluators else "Running"
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": order.name},
        "spec": {
            "runPolicy": {"cleanPodPolicy": cleans},
            "successPolicy": "",
            "tfReplicaSpecs": {
                _NAMES[each.job]: {
                    "replicas": each.number,
                    "restartPolicy": "ExitCode",
                    "template": {"spec": order.pod(each)},
                }
                for each in order.replicas
            },
        },
    }
