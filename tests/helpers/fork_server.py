"""Starts processes as forks of one that has imported TensorFlow already.

Many short processes spend most of their time on imports; each is a process of its own
all the same. A process that must not have TensorFlow yet, such as that of a launcher,
is a fork of one that has imported what TensorFlow needs, and not TensorFlow itself.
`python fork_server.py` takes orders on its standard input, a line of JSON each, and
writes `[number, pid, None]` of each process that began, which are counted, and
`[number, pid, exit code]` of each that ended: a pid may come again.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import importlib.util
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from queue import Queue
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
WITHOUT = "--without-tensorflow"
NEEDED = (
    "absl.logging",
    "google.protobuf.text_format",
    "h5py",
    "ml_dtypes",
    "numpy",
    "opt_einsum",
)


class Forked:
    """One process; as much of `subprocess.Popen` as the tests need."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._ended = threading.Event()
        self._code: int | None = None

    def end(self, code: int) -> None:
        """Takes the exit code."""
        self._code = code
        self._ended.set()

    def poll(self) -> int | None:
        """The exit code, if it has ended."""
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once it has ended."""
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired(f"task {self.pid}", timeout or 0.0)
        assert self._code is not None
        return self._code


class ForkServer:
    """The process that forks, from the tests' side.

    Args:
      tensorflow: whether its processes have TensorFlow imported.
    """

    def __init__(self, tensorflow: bool = True) -> None:
        words = [] if tensorflow else [WITHOUT]
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), *words],
            # Threads of a matrix library do not survive a fork.
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        self._running: dict[int, Forked] = {}
        self._started: Queue[Forked | None] = Queue()
        self._one_at_a_time = threading.Lock()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            number, pid, code = json.loads(line)
            if code is None:
                self._running[number] = Forked(pid)
                self._started.put(self._running[number])
            else:
                self._running.pop(number).end(code)
        self._started.put(None)

    def start(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        *,
        errors: Path | None = None,
        folder: Path = ROOT,
    ) -> Forked:
        """Starts `python ARGUMENTS`.

        Args:
          arguments: a script or `-m` and a module or `-c` and code; then what
            `sys.argv` has.
          environment: what is set besides this process's environment; Python looks
            into the folders of a `PYTHONPATH`, as at its start.
          log: what is printed is added to this file.
          errors: what goes to the standard error output is added here; None takes
            `log`.
          folder: the working directory.
        """
        order = {
            "argv": [*arguments],
            "env": {**environment},
            "files": [str(log), str(errors or log)],
            "folder": str(folder),
        }
        assert self._process.stdin is not None
        with self._one_at_a_time:
            print(json.dumps(order), file=self._process.stdin, flush=True)
            started = self._started.get()
        assert started is not None, "the fork server has ended"
        return started

    def run(
        self, *arguments: str, folder: Path = ROOT, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs `python ARGUMENTS` to its end, as `subprocess.run` does."""
        with tempfile.TemporaryDirectory() as temporary:
            out, err = Path(temporary, "out"), Path(temporary, "err")
            process = self.start(arguments, environment, out, errors=err, folder=folder)
            try:
                code = process.wait()
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
            return subprocess.CompletedProcess(
                arguments, code, out.read_text(), err.read_text()
            )

    def close(self) -> None:
        """Ends it; it ends what it has started."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        finally:
            self._process.kill()


@contextlib.contextmanager
def fork_server(tensorflow: bool = True) -> Iterator[ForkServer]:
    """A fork server; no process outlives the block."""
    server = ForkServer(tensorflow)
    try:
        yield server
    finally:
        server.close()


def _run(order: Mapping[str, Any]) -> None:
    """The forked process; it ends as any script does."""
    os.setsid()
    for number, path in zip((0, 1, 2), (os.devnull, *order["files"]), strict=True):
        with open(path, "ab" if number else "rb") as file:
            os.dup2(file.fileno(), number)
    os.chdir(order["folder"])
    os.environ.update(order["env"])
    sys.path[:0] = filter(None, order["env"].get("PYTHONPATH", "").split(os.pathsep))
    first, *rest = order["argv"]
    if first == "-m":
        sys.argv = rest
        sys.path.insert(0, "")
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path.insert(0, "")
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = order["argv"]
        sys.path.insert(0, str(Path(first).parent))
        runpy.run_path(first, run_name="__main__")
    sys.exit(0)


def _import_all() -> None:
    import tensorflow  # noqa: F401

    import hookbridge as hb
    from hookbridge.loops.sessions import callable_session  # noqa: F401

    _ = (hb.loops.SessionCluster, hb.as_hooks, hb.loops.TowerLoop)


def _import_what_tensorflow_needs() -> None:
    for name in (*NEEDED, "hookbridge.cli.run", "hookbridge.run.execute"):
        importlib.import_module(name)
    # To bind the symbols of its library takes as long as many modules do.
    spec = importlib.util.find_spec("tensorflow")
    assert spec is not None and spec.origin is not None
    folder = Path(spec.origin).with_name("python")
    for library in folder.glob("_pywrap_tensorflow_internal*.so"):
        ctypes.CDLL(str(library))
    assert "tensorflow" not in sys.modules


def main() -> None:
    """Forks as it is told, until its standard input is closed."""
    sys.path.insert(0, str(ROOT))
    if WITHOUT in sys.argv:
        _import_what_tensorflow_needs()
    else:
        _import_all()
    # The children's collections do not look at what is shared, and do not copy it.
    gc.collect()
    gc.freeze()
    running: dict[int, int] = {}
    lock = threading.Lock()

    def say(number: int, pid: int, code: int | None) -> None:
        with lock:
            print(json.dumps([number, pid, code]), flush=True)

    def reap(number: int, pid: int) -> None:
        _, status = os.waitpid(pid, 0)
        del running[number]
        say(number, pid, os.waitstatus_to_exitcode(status))

    for number, line in enumerate(sys.stdin):
        order = json.loads(line)
        with lock:  # the child gets no lock that another thread holds
            pid = os.fork()
        if pid == 0:
            _run(order)
        running[number] = pid
        say(number, pid, None)
        threading.Thread(target=reap, args=(number, pid), daemon=True).start()
    for pid in list(running.values()):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
