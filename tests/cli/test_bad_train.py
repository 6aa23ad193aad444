"""Bad clusters and guests on the command line: one line, exit code 2, no server."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from small_job import JOB

from hookbridge.cli import main
from hookbridge.jobs.loops.tasks.ports import free_ports

GUEST = """
class Epochs(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        pass

guests = [Epochs()]
"""
ANY_SIZE = """
def train_input_fn():
    x = np.arange(48, dtype=np.float32)
    return tf.data.Dataset.from_tensor_slices((x, x)).batch(batch_size)
"""
JOBS = ("chief", "worker", "ps")
CHIEF = {"type": "chief", "index": 0}


def tf_config(task: Any = None, **jobs: Any) -> str:
    """A `TF_CONFIG`; `jobs` replace its jobs, and None drops a job."""
    addresses = [f"localhost:{port}" for port in free_ports(3)]
    cluster = {job: [a] for job, a in zip(JOBS, addresses, strict=True)}
    cluster = {job: hosts for job, hosts in {**cluster, **jobs}.items() if hosts}
    return json.dumps({"cluster": cluster, "task": task or CHIEF})


BAD: dict[str, tuple[Any, list[str], str, str]] = {
    "not_json": (lambda: "{cluster", [], "", "expected JSON"),
    "unknown_task": (
        lambda: tf_config({"type": "boss", "index": 0}),
        *([], "", "['task']['type'] is 'boss'"),
    ),
    "no_parameter_server": (lambda: tf_config(ps=None), [], "", "expected also 'ps'"),
    "nobody_trains": (
        lambda: tf_config({"type": "ps", "index": 0}, chief=None, worker=None),
        *([], "", "nobody trains"),
    ),
    "batch_of_any_size_without_a_chief": (
        lambda: tf_config({"type": "worker", "index": 0}, chief=None),
        *(["--num_towers=3"], ANY_SIZE, "batch of 8 examples for 3 towers"),
    ),
    "batch_of_any_size_in_one_process": (
        lambda: "",
        *(["--num_towers=3"], ANY_SIZE, "batch of 8 examples for 3 towers"),
    ),
    "guest_that_cannot_run": (tf_config, [], GUEST, "`Epochs`"),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_refused_before_any_server_starts(
    case: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text, flags, more, message = BAD[case]
    config = text()
    monkeypatch.setenv("TF_CONFIG", config)
    started: list[Any] = []

    def start(*arguments: Any, **options: Any) -> None:
        started.append(arguments)
        raise AssertionError("a server starts")

    monkeypatch.setattr(tf.distribute.Server, "__init__", start)
    (tmp_path / "job.py").write_text(JOB + more)
    model_dir = tmp_path / "model"
    arguments = [f"--model_dir={model_dir}", *flags, str(tmp_path / "job.py")]
    assert main(["train", *arguments]) == 2
    err = capsys.readouterr().err
    assert message in err, err
    assert len([line for line in err.splitlines() if line.startswith("hookb")]) == 1
    assert not started
    assert not list(model_dir.glob("*"))


def test_a_port_in_use_gets_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "job.py").write_text(JOB)
    with socket.create_server(("localhost", 0)) as other:
        port = other.getsockname()[1]
        monkeypatch.setenv("TF_CONFIG", tf_config(chief=[f"localhost:{port}"]))
        arguments = [f"--model_dir={tmp_path}/model", str(tmp_path / "job.py")]
        assert main(["train", *arguments]) == 2
    assert f"Port {port} of `chief` 0" in capsys.readouterr().err


@pytest.mark.parametrize("config", ["  ", '{"cluster": null, "environment": "cloud"}'])
def test_without_a_cluster_in_tf_config_it_trains_here(
    config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_CONFIG", config)
    (tmp_path / "job.py").write_text(JOB)
    arguments = [f"--model_dir={tmp_path}/model", "--max_steps=1"]
    assert main(["train", *arguments, str(tmp_path / "job.py")]) == 0
    assert list((tmp_path / "model").glob("model.ckpt-1.*"))
