"""What a user of `hookbridge cluster` sees of its tasks' output."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ONE_TENSORFLOW = True

NOISE = (
    "I0000 00:00:1795.778361   14471 port.cc:153] oneDNN custom operations are on.",
    "2026-11-23 12:00:00.123456: I tensorflow/core/util/port.cc:111] oneDNN",
    "E0000 00:00:1795.656414  15625 cuda_platform.cc:52] failed call to cuInit: (303)",
    "W0000 00:00:1795.4  1 local_rendezvous.cc:412] Local rendezvous is aborting",
    " [[{{node ReadVariableOp}}]]",
    "Additional GRPC error information from remote target /job:ps/replica:0/task:0",
    "\t [[ReadVariableOp_S1]]",
)
SHOWN = (
    "W0000 00:00:1795.4  1 cpu_allocator_impl.cc:84] Allocation exceeds 10%",
    "INFO:tensorflow:loss = 1.0",
    "tensorflow.errors_impl.AbortedError: Graph execution error:",
    " [[{{node of_an_error}}]]",
)
ROOT = Path(__file__).resolve().parents[2]
ERASE = "\x1b[1A\x1b[J"  # of the line above
ONCE = "global step (tf.train.get_global_step) has not been increased. Current: 1"
LINES = [*NOISE, ONCE, ONCE, *SHOWN]
PRINTS = f"print({chr(10).join(LINES)!r})"


def command(code: str, *flags: str) -> list[str]:
    return [sys.executable, "-m", "hookbridge", "cluster", "--num_workers=1",
            "--num_ps=0", *flags, "--", sys.executable, "-c", code]  # fmt: skip


def environment(**more: str) -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"} | more


def test_noise_is_in_the_files_alone_and_a_warning_is_said_once(
    subtests: pytest.Subtests, tmp_path: Path
) -> None:
    run = command(PRINTS, f"--log_dir={tmp_path}")
    out = subprocess.check_output(run, env=environment(), text=True)
    assert out.count(ONCE) == 1 and out.count("loss = 1.0") == 2
    assert len(out.splitlines()) == 1 + 2 * len(SHOWN)
    for task in ("chief_0", "worker_0"):
        with subtests.test(str(task)):
            assert (tmp_path / f"{task}.log").read_text().splitlines() == LINES
    # A user who sets the level sees all.
    shown = environment(TF_CPP_MIN_LOG_LEVEL="0")
    out = subprocess.check_output(command(PRINTS), env=shown, text=True)
    assert len(out.splitlines()) == 1 + 2 * (len(SHOWN) + len(NOISE))


# One task rewrites a line as a progress bar does, and the other one prints. Each waits
# until the terminal has what comes before: then the test makes a file of that name.
REWRITES = """
import os, pathlib, time

def until_shown(text):
    while not pathlib.Path(text).exists(): time.sleep(0.02)

if "chief" in os.environ["TF_CONFIG"].rpartition("task")[2]:
    from hookbridge.jobs.callbacks.progress import Progress

    progress = Progress()
    for step in range(2):
        progress._print(f"step {step}", "" if progress._rewrites() else "\\n")
        until_shown(f"step {step}")
    os.write(2, b"W0000 logged\\nI0000 00:00:1795.7 1 worker.cc:216] Cancelled\\n")
    until_shown("hello")
    progress._print("step 2", "\\n")
else:
    until_shown("W0000 logged")
    print("hello")
"""
SHOWN_IN_ORDER = ("step 0", "step 1", "W0000 logged", "hello")


def test_a_terminal_has_a_live_line_for_a_task_that_rewrites_one(
    tmp_path: Path,
) -> None:
    launcher, terminal = pty.openpty()
    process = subprocess.Popen(
        command(REWRITES),
        stdout=terminal,
        stderr=terminal,
        env=environment(PYTHONPATH=str(ROOT)),
        cwd=tmp_path,
    )
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):  # the last process has closed the terminal
        while read := os.read(launcher, 1 << 16):
            shown += read
            for text in SHOWN_IN_ORDER:
                if text.encode() in shown:
                    (tmp_path / text).touch()
    assert process.wait() == 0
    os.close(launcher)
    text = shown.decode().replace("\r\n", "\n")
    # Each state of the line takes the place of the one before it; what the other task
    # prints goes above.
    assert f"[chief 0] step 0\n{ERASE}[chief 0] step 1\n" in text
    assert f"{ERASE}[worker 0] hello\n[chief 0] step 1\n" in text
    # A log line of the same process does not end the live line.
    logged = "[chief 0] W0000 logged"
    assert f"{ERASE}{logged}\n[chief 0] step 1\n" in text
    assert screen(text) == [logged, "[worker 0] hello", "[chief 0] step 2"]


def screen(text: str) -> list[str]:
    """The lines that stand on a terminal in the end."""
    first, *erased = text.split(ERASE)
    lines = first.splitlines()
    for part in erased:
        lines = lines[:-1] + part.splitlines()
    return lines


def test_a_pipe_gets_whole_lines(tmp_path: Path) -> None:
    for text in SHOWN_IN_ORDER:  # each stream has a pipe, so nobody needs to wait
        (tmp_path / text).touch()
    done = subprocess.run(
        command(REWRITES),
        env=environment(PYTHONPATH=str(ROOT)),
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "[worker 0] hello\n")
    lines = ("step 0", "step 1", "W0000 logged", "step 2")
    assert done.stderr.splitlines() == [f"[chief 0] {line}" for line in lines]
