"""A TF1 program that gets its cluster by flags, with real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fork_server import ForkServer
from launching import CLUSTER_FLAGS, ROOT
from program_table import RECORDED, REPLICA, printed_losses

pytestmark = pytest.mark.slow


def of_cluster(
    launcher: ForkServer, folder: Path, *program: str, **environment: str
) -> list[str]:
    """The lines that a chief, a worker and a parameter server print."""
    hookbridge = ("-m", "hookbridge")
    done = launcher.run(
        *(*hookbridge, "cluster", "--tf1_flags", "--num_workers=1", "--"),
        *(launcher.python, *hookbridge, "run", *program),
        folder=folder,
        PYTHONPATH=str(ROOT),
        CUDA_VISIBLE_DEVICES="",
        **environment,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


@pytest.mark.one_tensorflow
def test_synchronous_replicas_have_the_losses_of_their_tensorflow(
    subtests: pytest.Subtests, launcher: ForkServer, tmp_path: Path
) -> None:
    elsewhere = "of somebody else"
    lines = of_cluster(launcher, tmp_path, *REPLICA.command(), TF_CONFIG=elsewhere)
    printed = "\n".join(lines)
    recorded = json.loads(RECORDED.read_text())["mnist_replica"]["losses"]
    # The step and the variables of a run are not read at one moment. So a run may print
    # another step than that of its loss, and a loss between two updates. The optimizer
    # drops the gradient of such a run.
    losses = printed_losses(printed)
    for _, loss in recorded:
        assert any(x == pytest.approx(float(loss), rel=1e-5) for x in losses), loss
    for task in ("chief 0", "worker 0"):
        with subtests.test(str(task)):
            assert f"[{task}] Training elapsed time" in printed
    assert "[ps 0] job name = ps" in lines


# Each of two workers has four towers, and each update takes a gradient of each. In
# TensorFlow one worker then waits for gradients of others, which have ended.
BUILD = """
def main(_):
    workers = F.worker_hosts.split(",")
    own = "/job:worker/task:%d" % F.task_index
    cluster = tf.train.ClusterSpec({"ps": F.ps_hosts.split(","), "worker": workers})
    server = tf.train.Server(cluster, job_name=F.job_name, task_index=F.task_index)
    chief, config = F.task_index == 0, tf.ConfigProto(device_filters=["/job:ps", own])
    if F.job_name == "ps":
        server.join()
    setter = tf.train.replica_device_setter(worker_device=own, cluster=cluster)
    with tf.device(setter):
        step = tf.train.get_or_create_global_step()
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        optimizer = tf.train.SyncReplicasOptimizer(
            tf.train.GradientDescentOptimizer(0.1), len(workers), len(workers))
        towers = []
        for tower in range(4):
            with tf.name_scope("tower%d" % tower):
                loss = (weight - 1.0) ** 2
                (gradient, _), = optimizer.compute_gradients(loss, [weight])
                towers.append(gradient)
        update = optimizer.apply_gradients([(tf.add_n(towers) / 4, weight)], step)
        init = tf.global_variables_initializer()
        train(server.target, chief, config, optimizer, update, init, step)
    print("ended")
"""
WITH_HOOKS = """
def train(master, chief, config, optimizer, update, init, step):
    hooks = [optimizer.make_session_run_hook(chief),
             tf.train.StopAtStepHook(last_step=200)]
    with tf.train.MonitoredTrainingSession(
            master=master, is_chief=chief, hooks=hooks, config=config) as session:
        while not session.should_stop():
            session.run(update)

tf.app.run()
"""
WITH_A_SUPERVISOR = """
def train(master, chief, config, optimizer, update, init, step):
    queue = optimizer.get_chief_queue_runner()
    tokens = optimizer.get_init_tokens_op()
    sv = tf.train.Supervisor(
        is_chief=chief, init_op=init, global_step=step, recovery_wait_secs=1,
        local_init_op=(
            optimizer.chief_init_op if chief else optimizer.local_step_init_op),
        ready_for_local_init_op=optimizer.ready_for_local_init_op)
    with sv.managed_session(master, config=config) as session:
        if chief:
            sv.start_queue_runners(session, [queue])
            session.run(tokens)
        done = 0
        while done < 200:  # and not `sv.should_stop()`
            _, done = session.run([update, step])

tf.app.run()
"""
PROGRAMS = {"hooks": WITH_HOOKS, "supervisor": WITH_A_SUPERVISOR}


@pytest.mark.parametrize(
    "program", [pytest.param("hooks", marks=pytest.mark.exhaustive), "supervisor"]
)
def test_tasks_of_synchronous_towers_end_together(
    program: str, launcher: ForkServer, tmp_path: Path
) -> None:
    path = tmp_path / "towers.py"
    path.write_text(CLUSTER_FLAGS + BUILD + PROGRAMS[program])
    lines = of_cluster(launcher, tmp_path, str(path))
    assert sorted(lines) == ["[chief 0] ended", "[worker 0] ended"]


@pytest.mark.one_tensorflow
@pytest.mark.parametrize("flag", ["--group_stop", "--no-group-stop"])
def test_tensorflow_s_own_ending_can_be_had(flag: str) -> None:
    code = "import os; print(os.environ.get('HOOKBRIDGE_GROUP_STOP'))"
    done = subprocess.run(
        [sys.executable, "-m", "hookbridge", "cluster", "--num_workers=0", flag,
         "--num_ps=0", "--", sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )  # fmt: skip
    expected = "1" if flag == "--group_stop" else "None"
    assert done.stdout == f"[chief 0] {expected}\n"
