"""`hookbridge cluster --config=config.yaml`, and what it prints for orchestrators."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from one_line import one_line_of_error

from hookbridge.cli import main
from hookbridge.ground.processes.tf_config import ClusterConfig

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
ONE_TENSORFLOW = True
COMMAND = ["python", "train.py", "--job-dir=gs://bucket/job"]


def test_a_manifest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(CUSTOM)
    words = ["cluster", f"--config={path}", "--to=tfjob", "--image=me/job:1"]
    assert main([*words, "--name=digits", "--", *COMMAND]) == 0
    text = capsys.readouterr().out
    assert "&" not in text  # plain YAML, without references
    made = yaml.safe_load(text)
    assert made["metadata"] == {"name": "digits"}
    assert made["spec"]["runPolicy"] == {"cleanPodPolicy": "Running"}
    found = {}
    for name, replicas in made["spec"]["tfReplicaSpecs"].items():
        assert replicas["restartPolicy"] == "ExitCode"
        pod = replicas["template"]["spec"]
        assert pod["terminationGracePeriodSeconds"] == 60
        (container,) = pod["containers"]
        assert (container["image"], container["command"]) == ("me/job:1", COMMAND)
        places = [container.get("resources"), pod.get("nodeSelector")]
        found[name] = (replicas["replicas"], *filter(None, places))
    machine = "node.kubernetes.io/instance-type"
    assert found == {
        "Chief": (1, {"limits": {"nvidia.com/gpu": 4}}),
        "Worker": (3, {machine: "n1-standard-8"}),
        "PS": (2, {machine: "n1-highmem-4"}),
    }
    assert main(["cluster", f"--config={path}", "--to=slurm", "--", *COMMAND]) == 0
    assert "#SBATCH --gpus-per-node=4\n" in capsys.readouterr().out


def test_a_local_cluster(
    subtests: pytest.Subtests, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(CUSTOM)
    program = "import os, sys; print(os.environ.get('TF_CONFIG'), *sys.argv[1:])"
    command = [sys.executable, "-c", program]
    tasks = []
    for flags in ([], ["--tf1_flags"]):
        with subtests.test(str(flags)):
            assert main(["cluster", f"--config={path}", *flags, "--", *command]) == 0
            lines = [ln.partition("] ") for ln in capsys.readouterr().out.splitlines()]
            tasks.append({name.lstrip("["): said for name, _, said in lines})
    by_config, by_flags = tasks
    trainers = {"chief 0", "worker 0", "worker 1", "worker 2"}
    assert by_config.keys() >= trainers <= by_flags.keys()
    jobs = json.loads(by_config["chief 0"])["cluster"]
    sizes = {job: len(hosts) for job, hosts in jobs.items()}
    assert sizes == {"chief": 1, "worker": 3, "ps": 2}
    config, servers, workers, *place = by_flags["chief 0"].split()
    assert place == ["--job_name=worker", "--task_index=0"] and config == "None"
    assert (servers + workers).count("localhost:") == 6


def strict(schema: Any) -> Any:
    """The schema, which refuses unknown fields, as `kubectl --validate=strict` does."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: strict(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        closed["additionalProperties"] = False
    return closed


def validator(kind: str) -> Any:
    text = (
        Path(__file__).resolve().parents[1] / "data/kubernetes_schemas.yaml"
    ).read_text()
    return jsonschema.Draft202012Validator(strict(yaml.safe_load(text)[kind]))


SIZES: list[list[str]] = [
    [],
    ["--config=config.yaml"],
    ["--num_workers=3", "--num_ps=2", "--evaluator", "--volume=models:/models"],
]


@pytest.mark.parametrize("kind", ["TFJob", "JobSet"])
def test_manifests_fit_the_schemas_of_their_operators(
    subtests: pytest.Subtests,
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text(CUSTOM + "  evaluatorType: standard\n"
                                   "  evaluatorCount: 1\n")  # fmt: skip
    schema = validator(kind)
    for size in SIZES:
        with subtests.test(str(size)):
            words = ["cluster", f"--to={kind.lower()}", "--image=x", *size]
            assert main([*words, "--", *COMMAND]) == 0
            made = yaml.safe_load(capsys.readouterr().out)
            assert [error.message for error in schema.iter_errors(made)] == []
    # The schema looks at all fields.
    made["spec"]["unknown"] = 1
    assert "'unknown' was unexpected" in next(schema.iter_errors(made)).message


def test_an_evaluator_is_not_ended_with_the_chief(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--evaluator", "--image=x", "--volume=models:/m", "--grace_secs=30"]
    assert main(["cluster", "--to=tfjob", *words, "--", *COMMAND]) == 0
    spec = yaml.safe_load(capsys.readouterr().out)["spec"]
    assert spec["runPolicy"] == {"cleanPodPolicy": "None"}
    assert list(spec["tfReplicaSpecs"]) == ["Chief", "Worker", "PS", "Evaluator"]
    pod = spec["tfReplicaSpecs"]["Evaluator"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] == 30
    assert pod["containers"][0]["volumeMounts"] == [
        {"name": "model", "mountPath": "/m"}
    ]
    claim = {"claimName": "models"}
    assert pod["volumes"] == [{"name": "model", "persistentVolumeClaim": claim}]
    assert main(["cluster", "--to=jobset", *words, "--", *COMMAND]) == 0
    spec = yaml.safe_load(capsys.readouterr().out)["spec"]
    assert spec["successPolicy"]["targetReplicatedJobs"] == ["chief", "evaluator"]


def test_a_pod_of_a_jobset_has_its_own_place(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--name=digits", "--image=x", "--num_workers=2"]
    assert main(["cluster", "--to=jobset", *words, "--", *COMMAND]) == 0
    jobs = yaml.safe_load(capsys.readouterr().out)["spec"]["replicatedJobs"]
    found = []
    for job in jobs:
        spec = job["template"]["spec"]
        (container,) = spec["template"]["spec"]["containers"]
        index, config = container["env"]
        for place in range(spec["completions"]):
            # Kubernetes puts in the variables that stand above.
            text = config["value"].replace(f"$({index['name']})", str(place))
            found.append(ClusterConfig.from_json(text))
    assert [(c.task_type, c.task_index) for c in found] == [
        *[("chief", 0), ("worker", 0), ("worker", 1), ("ps", 0)]
    ]
    assert found[0].cluster["worker"][1] == "digits-worker-0-1.digits:2222"
    codes = jobs[0]["template"]["spec"]["podFailurePolicy"]["rules"][0]["onExitCodes"]
    assert [c for c in range(256) if c not in codes["values"]] == [0, *range(128, 256)]


# The commands of Slurm that the script calls, on one machine.
FAKES = {
    "scontrol": """#!/bin/bash
[ "$1" = requeue ] && echo "$@" >> "$LOG" || printf '%s\\n' 127.0.0.1 n1 n2 n3 n4
""",
    "srun": """#!/bin/bash
code=0
for ((i = 0; i < SLURM_NTASKS; i++)); do SLURM_PROCID=$i "$@" & done
for job in $(jobs -p); do wait "$job" || code=$?; done
exit $code
""",
}


@pytest.mark.parametrize("code", [0, 1, 143])
def test_a_script_of_slurm(
    code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    program = (
        "import json, os, pathlib, sys; c = json.loads(os.environ['TF_CONFIG']);"
        "t = c['task']; name = f\"{t['type']} {t['index']}\";"
        "pathlib.Path(name).write_text(os.environ['TF_CONFIG']);"
        f"sys.exit({code} if sys.argv[1:] == ['a b'] else 99)"
    )
    command = [sys.executable, "-c", program, "a b"]
    sizes = ["--num_workers=2", "--evaluator", "--grace_secs=90"]
    assert main(["cluster", "--to=slurm", *sizes, "--", *command]) == 0
    script = capsys.readouterr().out
    for name, text in {**FAKES, "job.sh": script}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o700)
    subprocess.run(["bash", "-n", "job.sh"], cwd=tmp_path, check=True)
    assert "#SBATCH --signal=TERM@90\n" in script and "#SBATCH --requeue\n" in script
    (ntasks,) = re.findall("--ntasks=(\\d+)", script)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "LOG": str(log),
        "SLURM_NTASKS": ntasks,
        "SLURM_JOB_NODELIST": "n[0-4]",
        "SLURM_JOB_ID": "7",
        "SLURM_NTASKS_PER_NODE": "1",
    }
    done = subprocess.run(["bash", "job.sh"], cwd=tmp_path, env=environment)
    assert done.returncode == code
    assert (log.read_text() if log.exists() else "") == "requeue 7\n" * (code == 143)
    tasks = ["chief 0", "worker 0", "worker 1", "ps 0", "evaluator 0"]
    for task in tasks:
        config = ClusterConfig.from_json((tmp_path / task).read_text())
        assert f"{config.task_type} {config.task_index}" == task
        assert config.cluster == {
            "chief": ("127.0.0.1:2222",),
            "worker": ("n1:2223", "n2:2224"),
            "ps": ("n3:2225",),
        }


MASTER = "masterType: standard\n"
BAD = {
    "scaleTier: [": "line 1 is not YAML",
    "- 1\n": "has no keys; expected keys such as",
    "&a {trainingInput: *a}": "`trainingInput` is not known",
    "region: a\nregion: b\n": "has the key `region` more than once; exp",
    "args: " + "[" * 5000: "is not YAML: maximum recursion depth",
    "masterType: A machine\n": "`masterType` is 'A machine'; expected a machine type",
    "workerCont: 2\n": "`workerCont` is not known; the nearest: `workerCount`",
    "scaleTier: HUGE\n": "`scaleTier` is 'HUGE'; expected CUSTOM",
    "scaleTier: CUSTOM\n": "`masterType` is None",
    MASTER + "workerCount: many\n": "`workerCount` is 'many'",
    MASTER + "workerCount: [1]\n": "`workerCount` is ''; expected an integer",
    MASTER + "workerCount: 2001-99-99\n": "expected an integer from 0 to 1000",
    MASTER + f"workerCount: {'9' * 5000}\n": "expected an integer from 0 to 1000",
    MASTER + "workerType: standard\nworkerCount: 2\n": "`parameterServerCount` is None",
    MASTER + "evaluatorType: standard\nevaluatorCount: 2\n": "expected 0 or 1",
}


BAD_FLAGS = {
    "--config=config.yaml --to=tfjob": "without --image",
    "--to=tfjob --image=x --name=No_Name": "--name='No_Name'",
    "--to=tfjob --image=x --volume=models": "--volume='models'; expected the name",
    "--config=config.yaml --num_workers=2": "--config and --num_workers",
    "--config=config.yaml --tf1_flags --evaluator": "--tf1_flags and --evaluator",
    "--to=tfjob --image=x --tf1_flags": "--to=tfjob and --tf1_flags",
    "--config=config.yaml --image=x": "--to=local and --image",
    "--name=x": "--to=local and --name",
    "--to=slurm --image=x": "--to=slurm and --image",
    "--config=none.yaml": "does not exist",
}


def test_bad_files_and_flags(
    subtests: pytest.Subtests,
    working_folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    to_tfjob = "--config=config.yaml --to=tfjob --image=me/job:1"
    for text, flags, message in (
        *((text, to_tfjob, message) for text, message in BAD.items()),
        *((CUSTOM, flags, message) for flags, message in BAD_FLAGS.items()),
    ):
        with subtests.test(str(text)):
            Path("config.yaml").write_text(text)
            assert main(["cluster", *flags.split(), "--", "python"]) == 2
            assert message in one_line_of_error(capsys)
