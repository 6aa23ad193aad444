"""`hookbridge cluster --config=config.yaml`: a local cluster, or a TFJob manifest."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from hookbridge import errors
from hookbridge.cli import main
from hookbridge.cluster_config import tfjob

CUSTOM = """
trainingInput:
  scaleTier: CUSTOM
  masterType: complex_model_m_gpu
  workerType: n1-standard-8
  parameterServerType: n1-highmem-4
  workerCount: 3
  parameterServerCount: "2"
  runtimeVersion: "2.15"
"""
COMMAND = ["python", "train.py", "--job-dir=gs://bucket/job"]


def container(cpus: str, memory: str, gpus: int = 0) -> dict[str, Any]:
    quantities: dict[str, Any] = {"cpu": cpus, "memory": memory}
    if gpus:
        quantities["nvidia.com/gpu"] = gpus
    return {
        "name": "tensorflow",
        "image": "me/job:1",
        "command": COMMAND,
        "resources": {"requests": quantities, "limits": quantities},
    }


def replicas(number: int, **pod: Any) -> dict[str, Any]:
    return {
        "replicas": number,
        "restartPolicy": "OnFailure",
        "template": {"spec": {"containers": [container(**pod)]}},
    }


EXPECTED = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "TFJob",
    "metadata": {"name": "digits"},
    "spec": {
        "runPolicy": {"cleanPodPolicy": "Running"},
        "tfReplicaSpecs": {
            "Chief": replicas(1, cpus="8", memory="30720Mi", gpus=4),
            "Worker": replicas(3, cpus="8", memory="30720Mi"),
            "PS": replicas(2, cpus="4", memory="26624Mi"),
        },
    },
}


def to_tfjob(path: Path, *flags: str) -> int:
    flags = flags or ("--image=me/job:1", "--name=digits")
    return main(["cluster", f"--config={path}", "--to=tfjob", *flags, "--", *COMMAND])


def test_a_manifest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(CUSTOM)
    assert to_tfjob(path) == 0
    text = capsys.readouterr().out
    assert yaml.safe_load(text) == EXPECTED
    assert "&" not in text  # plain YAML, without references


@pytest.mark.parametrize(
    ("tier", "expected"),
    [
        ("BASIC", {"Chief": 1}),
        ("BASIC_GPU", {"Chief": 1}),
        ("STANDARD_1", {"Chief": 1, "Worker": 4, "PS": 3}),
        ("PREMIUM_1", {"Chief": 1, "Worker": 19, "PS": 11}),
    ],
)
def test_tiers(
    tier: str, expected: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(f"scaleTier: {tier}\n")
    assert to_tfjob(path) == 0
    made = yaml.safe_load(capsys.readouterr().out)["spec"]["tfReplicaSpecs"]
    assert {name: each["replicas"] for name, each in made.items()} == expected


def test_a_local_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(CUSTOM)
    program = "import os; print(os.environ['TF_CONFIG'])"
    command = [sys.executable, "-c", program]
    assert main(["cluster", f"--config={path}", "--", *command]) == 0
    lines = capsys.readouterr().out.splitlines()
    tasks = {line.partition("] ")[0].lstrip("[") for line in lines}
    assert {"chief 0", "worker 0", "worker 1", "worker 2"} <= tasks
    jobs = json.loads(lines[0].partition("] ")[2])["cluster"]
    sizes = {job: len(hosts) for job, hosts in jobs.items()}
    assert sizes == {"chief": 1, "worker": 3, "ps": 2}


def test_flags_of_tf1_in_a_cluster_of_a_config(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(CUSTOM)
    flags = [f"--config={path}", "--tf1_flags"]
    assert main(["cluster", *flags, "--evaluator", "--", "python"]) == 2
    assert "--tf1_flags and --evaluator" in capsys.readouterr().err
    command = [sys.executable, "-c", "import sys; print(sys.argv[1:])"]
    assert main(["cluster", *flags, "--", *command]) == 0
    lines = capsys.readouterr().out.splitlines()
    (chief,) = (line for line in lines if line.startswith("[chief 0] "))
    assert "'--job_name=worker', '--task_index=0'" in chief
    assert chief.count("localhost:") == 6  # a chief, 3 workers, 2 servers


def changed(path: str, value: Any) -> dict[str, Any]:
    """The manifest with one field changed; None removes it."""
    made: Any = json.loads(json.dumps(EXPECTED))  # a copy without shared objects
    *parents, last = path.split(".")
    place = made
    for key in parents:
        place = place[int(key) if key.isdecimal() else key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return dict(made)


CHIEF = "spec.tfReplicaSpecs.Chief"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("apiVersion", "kubeflow.org/v2", "apiVersion"),
        ("kind", "MPIJob", "kind"),
        ("metadata.name", "Not_A_Name", "metadata.name"),
        ("spec.runPolicy.cleanPodPolicy", "Some", "cleanPodPolicy"),
        ("spec.tfReplicaSpecs.Master", EXPECTED, "tfReplicaSpecs"),
        (CHIEF, None, "tfReplicaSpecs"),
        (f"{CHIEF}.replicas", 2, "Chief.replicas"),
        (f"{CHIEF}.replicas", "1", "Chief.replicas"),
        (f"{CHIEF}.restartPolicy", "Sometimes", "restartPolicy"),
        (f"{CHIEF}.template.spec.containers.0.name", "main", "containers.0.name"),
        (f"{CHIEF}.template.spec.containers.0.image", "", "containers.0.image"),
        (f"{CHIEF}.template.spec.containers.0.command", [], "containers.0.command"),
        (
            f"{CHIEF}.template.spec.containers.0.resources.limits.memory",
            "much",
            "limits.memory",
        ),
    ],
)
def test_the_schema_looks_at_each_field(path: str, value: Any, message: str) -> None:
    tfjob.check(EXPECTED)
    with pytest.raises(errors.InvalidArgumentError, match=message):
        tfjob.check(changed(path, value))


BAD = {
    "no_yaml": ("scaleTier: [", "line 1 is no YAML"),
    "a_list": ("- 1\n", "holds [1]; expected keys"),
    "unknown_key": ("workerCont: 2\n", "`workerCont` is not known; the nearest: `work"),
    "unknown_tier": ("scaleTier: HUGE\n", "`scaleTier` is 'HUGE'"),
    "tier_and_count": ("workerCount: 2\n", "`workerCount` stands beside `scaleTier: B"),
    "no_master": ("scaleTier: CUSTOM\n", "`masterType` is None"),
    "no_number": (
        "scaleTier: CUSTOM\nmasterType: standard\nworkerCount: many\n",
        "`workerCount` is 'many'",
    ),
    "no_server": (
        "scaleTier: CUSTOM\nmasterType: standard\nworkerType: standard\n"
        "workerCount: 2\n",
        "`parameterServerCount` is 0",
    ),
    "unknown_machine": (
        "scaleTier: CUSTOM\nmasterType: abacus\n",
        "masterType is 'abacus'; expected one of standard,",
    ),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_bad_files(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, message = BAD[case]
    path = tmp_path / "config.yaml"
    path.write_text(text)
    assert to_tfjob(path) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert message in err


def test_bad_flags(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(CUSTOM)
    assert to_tfjob(path, "--name=digits") == 2
    assert "without --image" in capsys.readouterr().err
    assert to_tfjob(path, "--image=x", "--name=No_Name") == 2
    assert "TFJob: metadata.name" in capsys.readouterr().err
    assert to_tfjob(path, "--image=x", "--num_workers=2") == 2
    assert "--config and --num_workers" in capsys.readouterr().err
    for flag in ("evaluator", "grace_secs=3", "tf1_flags"):
        assert to_tfjob(path, "--image=x", f"--{flag}") == 2
        name = flag.partition("=")[0]
        assert f"--to=tfjob and --{name}" in capsys.readouterr().err
    assert main(["cluster", f"--config={path}", "--image=x", "--", "python"]) == 2
    assert "--to=local and --image" in capsys.readouterr().err
    assert main(["cluster", "--name=x", "--", "python"]) == 2
    assert "--to=local and --name" in capsys.readouterr().err
    assert main(["cluster", "--to=tfjob", "--", "python"]) == 2
    assert "--to=tfjob without --config" in capsys.readouterr().err
    assert to_tfjob(tmp_path / "none.yaml") == 2
    assert "does not exist" in capsys.readouterr().err
