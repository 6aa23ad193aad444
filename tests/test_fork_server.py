"""Processes of the fork server behave as all processes do; so do their children."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from fork_server import ForkServer
from idle_clock import idle_secs

pytestmark = pytest.mark.slow
ONE_TENSORFLOW = True

LAUNCH = "import subprocess, sys; {}"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["-c", "import sys; print('tensorflow' in sys.modules); sys.exit(3)"], 3, "T"),
        (["-c", "import os; os.kill(os.getpid(), 9)"], -9, ""),
        (["-c", "import os, sys; print(os.environ['A'], os.getcwd())"], 0, "a /"),
        (["-S", "-c", "import sys; print('tensorflow' in sys.modules)"], 0, "False"),
    ],
)
def test_what_a_process_starts(
    words: list[str], code: int, said: str, fork_server: ForkServer
) -> None:
    call = (
        f"done = subprocess.run([sys.executable, *{words!r}], cwd='/', "
        "env={'A': 'a'}, capture_output=True, text=True); "
        "print(done.returncode, done.stdout)"
    )
    run = fork_server.run("-c", LAUNCH.format(call))
    assert run.returncode == 0, run.stderr
    told, _, output = run.stdout.partition(" ")
    assert int(told) == code
    assert output.startswith(said)


def test_signals_reach_what_it_starts(fork_server: ForkServer) -> None:
    task = (
        "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(7)); "
        "print('ready', flush=True)\nwhile True: time.sleep(0.02)"
    )
    call = (
        f"task = subprocess.Popen([sys.executable, '-c', {task!r}], "
        "stdout=subprocess.PIPE); task.stdout.readline(); task.terminate(); "
        "sys.exit(task.wait())"
    )
    assert fork_server.run("-c", LAUNCH.format(call)).returncode == 7


def test_nothing_outlives_who_asked_for_it(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    beats = tmp_path / "beats"
    task = (
        f"import pathlib, time; p = pathlib.Path({str(beats)!r})\n"
        "while True: p.write_text(str(time.monotonic())); time.sleep(0.02)"
    )
    call = (
        f"task = subprocess.Popen([sys.executable, '-c', {task!r}]); import pathlib, "
        f"time\nwhile not pathlib.Path({str(beats)!r}).exists(): time.sleep(0.02)\n"
        "task.kill(); sys.exit(-task.wait())"
    )
    assert fork_server.run("-c", LAUNCH.format(call)).returncode == 9
    began, last = idle_secs(), ""
    while (text := beats.read_text()) != last and idle_secs() - began < 20:
        last = text
        time.sleep(0.3)
    assert text == last
