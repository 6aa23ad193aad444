"""One model definition file in three loops: the same weights, metrics and events."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from commands import DIGITS, ROOT, hookbridge, printed, weights
from fork_server import ForkServer
from listing import LISTING

from hookbridge.ground import compat
from hookbridge.jobs.loops.tasks.local_cluster import LocalCluster
from hookbridge.jobs.training.definition import ModelDefinition
from hookbridge.jobs.training.job_inputs import Inputs
from hookbridge.jobs.training.job_process import JobProcess
from hookbridge.jobs.training.session_training import SessionTraining
from hookbridge.jobs.training.training_settings import TrainingSettings
from hookbridge.jobs.training.user_file import load_file

LOOPS = ("fit", "session", "estimator")
WEIGHTS = ("hidden/kernel", "hidden/bias", "logits/kernel", "logits/bias")
EPOCHS = 6  # the stopper ends the training after the third
# Two processes train; the chief of `fit` only coordinates.
SERVERS = {
    "fit": ("--num_workers=2", "--num_ps=1"),
    "session": ("--num_workers=1", "--num_ps=1"),
}
# The demo's test trains in both clusters too.
CLUSTERS = [
    pytest.param(loop, marks=pytest.mark.exhaustive)
    for loop in ("fit with servers", "session with servers")
]
# Steps that may have read the rate already when a callback sets another one: in `fit`
# those that are scheduled, at most an epoch, in a session the other process's step.
IN_FLIGHT = {"fit with servers": 9, "session with servers": 1}
# A file that sets up the devices of two towers, before another file's model.
CHOOSES = """
import sys

import tensorflow as tf

(cpu, *_) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * 2)

sys.path.insert(0, {folder!r})
from {name} import *
"""


class Run(NamedTuple):
    """What one command printed, and what its guests noted."""

    results: dict[str, float]
    notes: list[dict[str, Any]]
    err: str

    def values(self, *names: str) -> list[Any]:
        """The values of each note that has the first name."""
        notes = [note for note in self.notes if names[0] in note]
        many = [tuple(note[name] for name in names) for note in notes]
        return many if len(names) > 1 else [value for (value,) in many]


class Job:
    """A definition file, and the folder of its data and results."""

    def __init__(self, folder: Path, server: ForkServer) -> None:
        self.folder = folder
        self._server = server
        (folder / "listing.py").write_text(LISTING)
        rows = DIGITS.read_text().splitlines(keepends=True)
        for name, count in (("few", 300), ("whole", 288)):  # of batches of 32
            (folder / f"{name}.csv").write_text("".join(rows[: 1 + count]))
        (folder / "uploads").mkdir()

    def run(
        self, command: str, model: str, loop: str, *flags: str, file: str = "listing"
    ) -> Run:
        notes = self.folder / f"{command}-{model}-{loop}.jsonl"
        done = hookbridge(
            self._server,
            *(command, f"--model_def={file}.py", f"--loop={loop}", "--header_lines=1"),
            *(f"--model_dir={self.folder / model}", *flags),
            folder=self.folder,
            NOTES=str(notes),
            UPLOADS=str(self.folder / "uploads"),
        )
        assert done.returncode == 0, done.stdout + done.stderr
        lines = notes.read_text().splitlines() if notes.exists() else []
        return Run(printed(done), [json.loads(line) for line in lines], done.stderr)

    def train(self, loop: str, *flags: str, data: str = "few", **options: Any) -> Run:
        files = (f"--train_files={data}.csv", f"--eval_files={data}.csv")
        words = (*files, *flags, f"--epochs={EPOCHS}", "--seed=3")
        model = options.pop("model", loop)
        return self.run("train", model, loop, *words, **options)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer) -> Job:
    return Job(tmp_path_factory.mktemp("loops"), fork_server)


@pytest.fixture(scope="module")
def trained(job: Job) -> dict[str, Run]:
    """The training in each loop, in one process."""
    return {loop: job.train(loop) for loop in LOOPS}


@pytest.mark.parametrize(
    ("flags", "workers", "expected"),
    [
        ({}, 2, 57),  # each worker's step is a global step
        ({"sync": True}, 2, 29),
        ({"sync": True, "batch_per_tower": True, "num_towers": 2}, 3, 10),
    ],
)
def test_an_epoch_reads_the_data_once(
    flags: dict[str, Any], workers: int, expected: int
) -> None:
    path = str(ROOT / "examples" / "digits_towers.py")
    settings = TrainingSettings(
        path, "session", train_files=(str(DIGITS),), header_lines=1, **flags
    )
    definition = ModelDefinition(load_file(path))
    assert Inputs(definition, settings, (workers, 0)).steps_per_epoch() == expected


def test_a_late_worker_of_an_estimator_does_not_wait_for_a_chief_that_has_ended(
    tmp_path: Path,
) -> None:
    path = str(ROOT / "examples" / "distributed_trainer.py")
    settings = TrainingSettings(path, "estimator", str(tmp_path), ("list.csv",))
    definition = ModelDefinition(load_file(path))
    config = LocalCluster(num_workers=2, num_ps=1).configs()[1]
    part = JobProcess(definition, settings, Inputs(definition, settings), config, {})
    session_config = SessionTraining(part).estimator.config.session_config
    filters = ["/job:ps", f"/job:{config.task_type}/task:{config.task_index}"]
    assert list(session_config.device_filters) == filters


@pytest.mark.slow
@pytest.mark.both_tensorflows
def test_the_loops_train_alike(job: Job, trained: dict[str, Run]) -> None:
    """The same weights, events and logs as in `fit`."""
    fit, trained_weights = trained["fit"], weights(job.folder / "fit")
    for loop in LOOPS[1:]:
        other, found = trained[loop], weights(job.folder / loop)
        assert found["global_step"] == trained_weights["global_step"] == 30
        for name in WEIGHTS:
            np.testing.assert_allclose(found[name], trained_weights[name], atol=2e-5)
        for name, count in (("loss", 30), ("accuracy", 30), ("logs", 3)):
            native, ours = fit.values(name), other.values(name)
            assert len(native) == len(ours) == count
            for one, two in zip(native, ours, strict=True):
                if name == "logs":
                    assert one.keys() <= two.keys()
                    two = {key: two[key] for key in one}
                assert two == pytest.approx(one, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("loop", [*LOOPS, *CLUSTERS])
def test_the_listing_runs_as_it_stands(
    loop: str, job: Job, trained: dict[str, Run]
) -> None:
    """In each loop it stops at the end of an epoch, with the rates that it sets."""
    if loop in LOOPS:
        run = trained[loop]
    else:
        sync = ("--sync",) if "session" in loop else ()
        kind = loop.partition(" ")[0]
        run = job.train(kind, *SERVERS[kind], *sync, data="whole", model=loop)
    versions, rates = run.values("version"), run.values("rate")
    assert max(versions) >= 10  # it does not begin again in each epoch
    assert {tuple(names) for names in run.values("summary")} == {("accuracy", "loss")}
    assert run.values("uploaded") == [True]
    places = run.values("version", "batch", "size")
    assert {size for _, _, size in places} == {32}
    if loop in LOOPS:
        assert [place[:2] for place in places] == [(v, v % 10) for v in range(30)]
        assert rates == [0.01] * 12 + [0.001] * 18
    else:
        assert run.results["global_step"] < EPOCHS * 9
        assert set(rates) <= {0.01, 0.001}
        check_order_of_rates(run.notes, IN_FLIGHT[loop])


def check_order_of_rates(notes: list[dict[str, Any]], in_flight: int) -> None:
    """Checks the rates that the steps of all processes of a cluster have read.

    Each process sets the one rate before its steps, for the version that it sees. So it
    is high until a process comes to version 12, and low as soon as all have. Between
    these two, processes that are behind set the high rate again, in any order.

    Args:
      notes: the notes of all processes, in the order in which they were written.
      in_flight: how many steps may have read the rate before it was set anew.
    """
    early, late, behind = [], [], {n["process"] for n in notes if "version" in n}
    everyone = set(behind)
    for note in notes:
        if note.get("version", 0) >= 12:
            behind.discard(note["process"])
        if "rate" in note and behind == everyone:
            early.append(note["rate"])
        if "rate" in note and not behind:
            late.append(note["rate"])
    assert early.count(0.001) <= in_flight, notes
    assert late.count(0.01) <= in_flight, notes


@pytest.mark.slow
@pytest.mark.exhaustive
def test_towers_of_fit_train_as_one_device(job: Job, trained: dict[str, Run]) -> None:
    text = CHOOSES.format(folder=str(job.folder), name="listing")
    (job.folder / "chooses.py").write_text(text)
    job.train("fit", "--num_towers=2", model="two", file="chooses")
    one, two = weights(job.folder / "fit"), weights(job.folder / "two")
    assert two["global_step"] == one["global_step"]
    for name in WEIGHTS:
        np.testing.assert_allclose(two[name], one[name], atol=2e-5)


@pytest.mark.slow
@pytest.mark.skipif(compat.tf_version() < (2, 16), reason="there is no Keras 3")
def test_a_fit_of_keras_3_with_servers_is_refused(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    done = hookbridge(
        fork_server,
        *("train", f"--model_def={ROOT}/examples/digits_keras.py", "--loop=fit"),
        *("--num_workers=1", "--num_ps=1", "--epochs=1", "--header_lines=1"),
        *(f"--model_dir={tmp_path}", f"--train_files={DIGITS}"),
        TF_USE_LEGACY_KERAS="0",
        TF_CONFIG="{}",  # it has no cluster, so the flags say it
    )
    assert done.returncode == 2
    message = "[chief 0] hookbridge: train: Keras 3 cannot train under"
    assert message in done.stderr


@pytest.mark.slow
@pytest.mark.exhaustive
def test_an_older_keras_optimizer_trains_alike(job: Job) -> None:
    text = CHOOSES.format(folder=str(ROOT / "examples"), name="digits_keras")
    older = "def optimizer():\n    return tf.keras.optimizers.legacy.SGD(0.1)\n"
    (job.folder / "older.py").write_text(f"{text}\n\n{older}")
    found = {}
    for loop in ("fit", "session"):
        flags = ("--data_dir=few.csv", "--max_steps=5", "--seed=3", "--num_gpus=1")
        job.run("train", f"older {loop}", loop, *flags, file="older")
        found[loop] = weights(job.folder / f"older {loop}", WEIGHTS)
    for name in WEIGHTS:
        np.testing.assert_allclose(
            found["session"][name], found["fit"][name], atol=2e-5
        )


@pytest.mark.slow
def test_params_progress_and_report(job: Job, trained: dict[str, Run]) -> None:
    for loop, run in trained.items():
        folder = job.folder / loop
        assert run.values("params") == [
            {
                "batch_size": 32,
                "epochs": EPOCHS,
                "saved_model_path": f"{folder}/saved_model",
                "checkpoint_path": str(folder),
            }
        ]
        # A pipe gets plain lines of progress, among them the first and the last one.
        assert re.search(r"^epoch 3/6  step 30/60 .* loss \d", run.err, re.M), run.err
        page = (folder / "report.html").read_text("utf-8")
        assert "Training of listing.py" in page and "epoch_loss" in page
        assert "<script" not in page


@pytest.mark.slow
def test_each_loop_evaluates_and_predicts_with_the_weights_of_another(
    job: Job, trained: dict[str, Run]
) -> None:
    # `session` has the Estimator of `estimator` for these.
    loops = {"fit": "session", "session": "fit"}
    fit, session = (
        job.run("evaluate", model, loop, "--eval_files=few.csv")
        for loop, model in loops.items()
    )
    assert session.results == pytest.approx(fit.results, rel=1e-4)
    assert set(fit.results) == {"loss", "accuracy", "global_step"}
    assert fit.values("test") == session.values("test") == [True]
    (last, *_) = trained["fit"].values("logs")[::-1]
    assert fit.results["loss"] == pytest.approx(last["val_loss"], rel=1e-4)
    for loop, model in loops.items():
        run = job.run("predict", model, loop, "--predict_files=few.csv")
        assert run.values("predictions") == [[64, 10]] * 4 + [[44, 10]]


@pytest.mark.slow
@pytest.mark.parametrize("loop", ["session", "estimator"])
def test_a_loop_that_cannot_go_on_from_fit_says_so(
    loop: str, job: Job, trained: dict[str, Run], fork_server: ForkServer
) -> None:
    model = job.folder / f"fit, then {loop}"
    shutil.copytree(job.folder / "fit", model)
    before = sorted(model.glob("*.index"))
    done = hookbridge(
        fork_server,
        *("train", "--model_def=listing.py", f"--loop={loop}", "--header_lines=1"),
        *(f"--model_dir={model}", "--train_files=few.csv", f"--epochs={EPOCHS}"),
        folder=job.folder,
        NOTES=str(model / "notes.jsonl"),
        UPLOADS=str(job.folder / "uploads"),
    )
    assert done.returncode == 2, done.stderr
    assert f"Received --loop={loop} and" in done.stderr
    assert "lacks variables of this training" in done.stderr
    assert sorted(model.glob("*.index")) == before


@pytest.mark.slow
def test_a_file_that_is_missing_is_not_taken_for_a_checkpoint_that_does_not_fit(
    job: Job, trained: dict[str, Run], fork_server: ForkServer
) -> None:
    model = job.folder / "session, then without a file"
    shutil.copytree(job.folder / "session", model)
    (job.folder / "gone.py").write_text(
        "import tensorflow as tf\n"
        "from listing import *\n\n\n"
        "def train_input_fn():\n"
        "    lines = tf.data.TextLineDataset('gone.txt')\n"
        "    return lines.map(lambda line: (tf.zeros([64]), 0)).batch(32)\n"
    )
    done = hookbridge(
        fork_server,
        *("train", "--model_def=gone.py", "--loop=session", "--epochs=6"),
        *(f"--model_dir={model}", "--steps_per_epoch=10"),
        folder=job.folder,
        NOTES=str(model / "notes.jsonl"),
        UPLOADS=str(job.folder / "uploads"),
    )
    assert done.returncode != 0
    assert "gone.txt" in done.stderr
    assert "lacks variables" not in done.stderr
