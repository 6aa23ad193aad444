"""`hookbridge cluster` with real processes."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from idle_clock import idle_secs

ONE_TENSORFLOW = True
ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow

# Waits until every task has started, before one of them ends the job.
WAIT_FOR_ALL = """
while len(list(folder.glob("*.pid"))) < 4: time.sleep(0.02)
"""
TIMEOUT_IDLE_SECS = 120.0
ONE_WORKER = ("--num_workers=1", "--num_ps=0")
FLAGS = ("--num_workers=2", "--num_ps=1", "--grace_secs=10")

TASK = """
import json, os, pathlib, sys, time

def put(name, text):  # a file is there only with its text
    (folder / f"{name}.part").write_text(str(text))
    (folder / f"{name}.part").rename(folder / name)

config = json.loads(os.environ["TF_CONFIG"])
task = f"{config['task']['type']} {config['task']['index']}"
folder = pathlib.Path(sys.argv[1])
put(f"{task}.json", json.dumps(config))
put(f"{task}.pid", os.getpid())
"""


def cluster(
    code: str, folder: Path, *flags: str, ignored: tuple[int, ...] = ()
) -> subprocess.Popen[str]:
    # `nohup` and background jobs of a shell ignore signals, and child processes inherit
    # that.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    return subprocess.Popen(
        [sys.executable, "-m", "hookbridge", "cluster", *(flags or FLAGS), "--",
         sys.executable, "-c", TASK + code, str(folder)],
        preexec_fn=lambda: [signal.signal(n, signal.SIG_IGN) for n in ignored] and None,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate()
    return process.returncode, out, err


def runs(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    done = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True
    )
    return done.stdout.strip()[:1] not in ("", "Z")


def assert_nobody_left(folder: Path, *tasks: str) -> None:
    assert runs(os.getpid())
    left = [f.stem for f in folder.glob("*.pid") if runs(int(f.read_text()))]
    assert left == []
    assert {file.stem for file in folder.glob("*.json")} == set(tasks)


def wait_for(
    folder: Path,
    pattern: str,
    count: int,
    launcher: subprocess.Popen[str] | None = None,
) -> None:
    """Waits for so many files with a content, or for the end of the launcher."""
    began = idle_secs()
    while sum(file.stat().st_size > 0 for file in folder.glob(pattern)) < count:
        if launcher is not None and launcher.poll() is not None:
            return
        assert idle_secs() - began < TIMEOUT_IDLE_SECS, list(folder.iterdir())
        time.sleep(0.05)


def wait_until_nobody_runs(folder: Path) -> None:
    began = idle_secs()
    while left := [f.stem for f in folder.glob("*.pid") if runs(int(f.read_text()))]:
        assert idle_secs() - began < TIMEOUT_IDLE_SECS, left
        time.sleep(0.1)


def test_every_task_gets_its_configuration_and_a_prefix(tmp_path: Path) -> None:
    code = """
print("hello"); print("trouble", file=sys.stderr)
(folder / f"{task}.said").touch()
while len(list(folder.glob("*.said"))) < 5: time.sleep(0.02)
if task.startswith("ps"): time.sleep(600)
"""
    status, out, err = finished(cluster(code, tmp_path, *FLAGS, "--evaluator"))
    tasks = ["chief 0", "worker 0", "worker 1", "ps 0", "evaluator 0"]
    assert status == 0
    assert sorted(out.splitlines()) == sorted(f"[{task}] hello" for task in tasks)
    assert sorted(err.splitlines()) == sorted(f"[{task}] trouble" for task in tasks)
    assert_nobody_left(tmp_path, *tasks)
    configs = [json.loads(f.read_text()) for f in tmp_path.glob("*.json")]
    assert all(c["cluster"] == configs[0]["cluster"] for c in configs)
    sizes = {job: len(hosts) for job, hosts in configs[0]["cluster"].items()}
    assert sizes == {"chief": 1, "worker": 2, "ps": 1}
    addresses = [a for hosts in configs[0]["cluster"].values() for a in hosts]
    assert len(set(addresses)) == 4


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ('if task == "worker 1": sys.exit(7)', 7),
        # As a shell tells that a process was killed.
        ('if task == "ps 0": os.kill(os.getpid(), 9)', 128 + signal.SIGKILL),
    ],
)
def test_one_failure_ends_all_and_gives_its_exit_code(
    end: str, code: int, tmp_path: Path
) -> None:
    program = f"{WAIT_FOR_ALL}\n{end}\ntime.sleep(600)\n"
    assert finished(cluster(program, tmp_path))[0] == code
    assert_nobody_left(tmp_path, "chief 0", "worker 0", "worker 1", "ps 0")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_are_passed_on(number: int, tmp_path: Path) -> None:
    code = """
import signal
def save(number, frame):
    print("saved at", number); sys.exit(0)
signal.signal(signal.SIGTERM, save); signal.signal(signal.SIGINT, save)
(folder / f"{task}.ready").write_text("x")
time.sleep(600)
"""
    process = cluster(code, tmp_path, *ONE_WORKER)
    wait_for(tmp_path, "*.ready", 2)
    process.send_signal(number)
    status, out, _ = finished(process)
    assert status == 128 + number
    assert sorted(out.splitlines()) == [
        f"[chief 0] saved at {int(number)}",
        f"[worker 0] saved at {int(number)}",
    ]
    assert_nobody_left(tmp_path, "chief 0", "worker 0")


@pytest.mark.parametrize("ignored", [(), (signal.SIGINT,)])
def test_each_signal_is_passed_on_unless_it_is_ignored(
    ignored: tuple[int, ...], tmp_path: Path
) -> None:
    code = """
import signal
def note(number, frame):
    with open(folder / f"{task}.told", "a") as file: file.write(f"{number:d} ")
    if number == signal.SIGTERM: sys.exit(0)
signal.signal(signal.SIGTERM, note); signal.signal(signal.SIGINT, note)
(folder / f"{task}.ready").write_text("x")
while True: time.sleep(1)
"""
    process = cluster(code, tmp_path, *ONE_WORKER, ignored=ignored)
    wait_for(tmp_path, "*.ready", 2)
    process.send_signal(signal.SIGINT)
    if not ignored:
        wait_for(tmp_path, "*.told", 2)
    process.send_signal(signal.SIGTERM)
    status, _, _ = finished(process)
    assert status == 128 + (signal.SIGTERM if ignored else signal.SIGINT)
    told = "15 " if ignored else "2 15 "
    assert [f.read_text() for f in tmp_path.glob("*.told")] == [told] * 2


WITH_CHILD = """
import subprocess
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
put(f"child of {task}.pid", child.pid)
while True: time.sleep(1)
"""


@pytest.mark.parametrize("name", ["SIGHUP", "SIGQUIT", "SIGKILL"])
def test_no_task_outlives_its_launcher(name: str, tmp_path: Path) -> None:
    number = getattr(signal, name)
    process = cluster(WITH_CHILD, tmp_path, *ONE_WORKER)
    wait_for(tmp_path, "child*.pid", 2)
    process.send_signal(number)
    status, _, _ = finished(process)
    assert status == (-number if name == "SIGKILL" else 128 + number)
    wait_until_nobody_runs(tmp_path)


def test_no_task_outlives_its_launcher_and_its_guard(tmp_path: Path) -> None:
    process = cluster("time.sleep(600)", tmp_path, *ONE_WORKER)
    wait_for(tmp_path, "*.pid", 2)
    listed = subprocess.run(
        ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(process.pid)],
        capture_output=True,
        text=True,
    )
    (guard,) = (ln for ln in listed.stdout.splitlines() if "guard.py" in ln)
    for pid in (int(guard.split()[0]), process.pid):
        os.kill(pid, signal.SIGKILL)
    wait_until_nobody_runs(tmp_path)
    finished(process)


def test_a_task_gets_one_sigterm_when_its_launcher_is_killed(tmp_path: Path) -> None:
    code = """
import signal
def save(number, frame):
    with open(folder / f"{task}.saves", "a") as file: file.write("x")
signal.signal(signal.SIGTERM, save)
child = __import__("subprocess").Popen(["sleep", "600"])
put(f"child of {task}.pid", child.pid)
child.wait()
time.sleep(1)
(folder / f"{task}.saved").touch()
"""
    process = cluster(code, tmp_path, "--num_workers=0", "--num_ps=0")
    wait_for(tmp_path, "child*.pid", 1)
    process.kill()
    wait_until_nobody_runs(tmp_path)
    finished(process)
    assert (tmp_path / "chief 0.saves").read_text() == "x"
    assert (tmp_path / "chief 0.saved").exists()


def test_a_signal_during_the_clean_up(tmp_path: Path) -> None:
    """Tasks that do not listen to signals are ended too, with what they started."""
    code = """
import signal, subprocess
def note(number, frame): (folder / f"{task}.told").write_text("x")
if task == "chief 0":
    while not list(folder.glob("child*.pid")): time.sleep(0.02)
    sys.exit(3)
signal.signal(signal.SIGTERM, note)
signal.signal(signal.SIGINT, signal.SIG_IGN)
"""
    process = cluster(code + WITH_CHILD, tmp_path, *ONE_WORKER, "--grace_secs=1")
    # On a busy machine the task may be killed before it notes the signal.
    wait_for(tmp_path, "*.told", 1, process)
    process.send_signal(signal.SIGINT)
    assert finished(process)[0] == 3
    assert_nobody_left(tmp_path, "chief 0", "worker 0")


# More output than fits into the pipes between the tasks and the launcher.
MUCH = """
for _ in range(4000): os.write(1, ("\u00e9" * 50 + "\\n").encode())
(folder / f"{task}.done").touch()
"""
OUTPUTS = {
    "nobody_reads": ("| head -1; exit ${PIPESTATUS[0]}", {}),
    "full_disk": ("> /dev/full", {}),
    "closed": (">&-", {}),
    "both_closed": (">&- 2>&-", {}),
    "encoding": ("| cat; exit ${PIPESTATUS[0]}", {"PYTHONIOENCODING": "ascii:strict"}),
}


@pytest.mark.parametrize("case", sorted(OUTPUTS))
def test_output_that_cannot_be_written_stops_no_task(case: str, tmp_path: Path) -> None:
    where, environment = OUTPUTS[case]
    command = [sys.executable, "-m", "hookbridge", "cluster", "--num_ps=0", "--",
               sys.executable, "-c", TASK + MUCH, str(tmp_path)]  # fmt: skip
    process = subprocess.Popen(
        ["bash", "-c", f"{shlex.join(command)} {where}"],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = process.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, err
    assert len(list(tmp_path.glob("*.done"))) == 3
    assert_nobody_left(tmp_path, "chief 0", "worker 0", "worker 1")
    dropped = err.count(b"dropped output of the tasks")
    assert dropped == (case in ("nobody_reads", "full_disk"))
    if case == "encoding":
        assert out.count(b"\\xe9" * 50) == 3 * 4000


@pytest.mark.parametrize(
    ("command", "sink", "code", "words"),
    [
        ("docs index", ">&-", 0, ""),
        ("doctor setup.py", ">&- 2>&- <&-", 0, ""),
        ("--help", "> /dev/full", 2, "the output cannot be written: No space left on"),
        ("--version", "> /dev/full", 2, "the output cannot be written: No space left"),
        ("docs index", ">&{nobody_reads}", 141, ""),
    ],
)
def test_output_that_nobody_takes(
    command: str, sink: str, code: int, words: str
) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    to = sink.format(nobody_reads=writes)
    done = subprocess.run(
        ["bash", "-c", f"{shlex.quote(sys.executable)} -m hookbridge {command} {to}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        pass_fds=[writes],
    )
    os.close(writes)
    assert done.returncode == code
    assert done.stderr.startswith(f"hookbridge: {words}" if words else "")
    assert done.stderr.count("\n") == bool(words)
