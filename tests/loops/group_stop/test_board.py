"""What processes of a job write for each other on a real server."""

from __future__ import annotations

import contextlib

from hookbridge.ground.processes.tf_config import ClusterConfig
from hookbridge.jobs.loops.group_stop.board import JobStop, StopBoard
from hookbridge.jobs.loops.group_stop.member import POLL_SECS
from hookbridge.jobs.loops.tasks.ports import held_ports
from hookbridge.jobs.loops.tasks.server import start_server


def test_a_stop_counts_whose_writer_died_before_it_woke_the_others() -> None:
    with held_ports(2) as ports:
        worker, server = (f"127.0.0.1:{port}" for port in ports)
        config = ClusterConfig({"worker": (worker,), "ps": (server,)}, "ps", 0)
        target = start_server(config, None).target
    with contextlib.closing(StopBoard(target, config)) as board:
        board.begin(1)
        assert board.ending(1) is None
        board.write("stop_1", "143 chief 0: it received SIGTERM")
        ending = JobStop("chief 0: it received SIGTERM", 143)
        # TensorFlow forgets a limit that is over before its call has begun: on a busy
        # machine a short one would wait for ever.
        assert board.wait_for_stop(1, POLL_SECS) == ending
        assert board.stop(1, JobStop("worker 0: later")) == ending
