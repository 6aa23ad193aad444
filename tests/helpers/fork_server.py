"""Starts processes as forks of one that has imported TensorFlow already.

Many short processes would spend most of their time on imports. Each fork is a process
of its own all the same. If it starts a process with `sys.executable`, that is a fork
too. A process that must not have TensorFlow yet, such as that of a launcher, is a fork
of a server that has imported the modules TensorFlow needs, but not TensorFlow itself,
or that has put TensorFlow aside.
`python fork_server.py FOLDER READY` listens in FOLDER until its standard input is
closed. It imports when the first process is asked for, so a server that nobody needs
costs little.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import importlib.util
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from forked_python import Forked
from put_aside import put_tensorflow_aside

HERE = Path(__file__).resolve()
ROOT = HERE.parents[2]
# What a process has from its beginning: TensorFlow, the modules that TensorFlow needs,
# or also TensorFlow and Keras 2, put aside until the process imports them.
Ready: TypeAlias = Literal["tensorflow", "needs", "keras2_aside"]
NEEDED = (
    "absl.logging",
    "google.protobuf.text_format",
    "h5py",
    "ml_dtypes",
    "numpy",
    "opt_einsum",
)


class ForkServer:
    """The process that forks, as the tests see it: the one that listens in a folder.

    Tasks of its `python` run in forks too. It is the `sys.executable` of processes that
    have TensorFlow.
    """

    def __init__(self, folder: str) -> None:
        self._address = os.path.join(folder, "socket")
        self.python = os.path.join(folder, "python")

    def start(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        *,
        errors: Path | None = None,
        folder: Path = ROOT,
    ) -> Forked:
        """Starts `python ARGUMENTS`, with `environment` added to that of the server.

        Output is appended to `log`, that to standard error to `errors` if it is given.
        """
        with (
            open(os.devnull, "rb") as nothing,
            open(log, "ab") as out,
            open(errors or log, "ab") as err,
        ):
            files = [file.fileno() for file in (nothing, out, err)]
            return Forked(self._address, arguments, environment, str(folder), files)

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


@contextlib.contextmanager
def fork_server(ready: Ready = "tensorflow") -> Iterator[ForkServer]:
    """A fork server; no process outlives the block."""
    with tempfile.TemporaryDirectory() as folder, _listening(folder, ready):
        yield ForkServer(folder)


@contextlib.contextmanager
def fork_servers() -> Iterator[str]:
    """A fork server of each kind, in the folder of its name in the one returned."""
    with contextlib.ExitStack() as stack:
        parent = stack.enter_context(tempfile.TemporaryDirectory())
        for ready in get_args(Ready):
            folder = os.path.join(parent, ready)
            os.mkdir(folder)
            stack.enter_context(_listening(folder, ready))
        yield parent


@contextlib.contextmanager
def _listening(folder: str, ready: Ready) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, str(HERE), folder, ready],
        # Threads of a matrix library do not survive a fork.
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        assert process.stdout.readline(), "the fork server has ended"
        yield
    finally:
        # Ends the server, which ends the processes that it has started.
        process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(60)
        process.kill()


def _run(order: Mapping[str, Any], files: Sequence[int]) -> None:
    """Runs in the forked process, and ends as any script does."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(order["folder"])
    if order["replaces"]:
        os.environ.clear()
    os.environ.update(order["env"])
    if "PYTHONUNBUFFERED" in order["env"]:
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(write_through=True)  # type: ignore[union-attr]
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
    import pytest  # noqa: F401
    import tensorflow  # noqa: F401

    import hookbridge as hb
    from hookbridge.jobs.loops import callable_session  # noqa: F401
    from hookbridge.jobs.training import job  # noqa: F401

    _ = (hb.loops.SessionCluster, hb.as_hooks, hb.replicate_model_fn)


def _import_what_tensorflow_needs() -> None:
    for name in (*NEEDED, "hookbridge.cli.run", "hookbridge.old_programs.run.execute"):
        importlib.import_module(name)
    # Loaded too: binding the symbols of TensorFlow's library takes long.
    spec = importlib.util.find_spec("tensorflow")
    assert spec is not None and spec.origin is not None
    folder = Path(spec.origin).with_name("python")
    for library in folder.glob("_pywrap_tensorflow_internal*.so"):
        ctypes.CDLL(str(library))
    assert "tensorflow" not in sys.modules


# What the server has imported, for its children, also if it is put aside.
_imported: dict[str, Any] = {}


def _keep_imported() -> None:
    """Called last of all when a child ends: it would copy the memory of all modules.

    An interpreter that ends clears its modules. Those that the child has imported
    itself are cleared as ever.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_imported))
    for name in _imported.keys() - {"builtins", "sys"}:
        sys.modules.pop(name, None)


def _write_python(folder: str) -> str:
    """Writes a `python` whose task runs in a fork of this process; returns its path."""
    source = HERE.with_name("forked_python.py").read_text()
    python = Path(folder, "python")
    python.write_text(f"#!{sys.executable} -IS\n{source}")
    python.chmod(0o700)
    return str(python)


class _Children:
    """The running processes, each with the connection that asked for it."""

    def __init__(self) -> None:
        self._connections: dict[int, socket.socket] = {}
        self._lock = threading.Lock()

    def add(self, pid: int, connection: socket.socket) -> None:
        """Sends the pid of a process, and its exit code as soon as there is one."""
        self._connections[pid] = connection
        for follow in (self._until_it_ends, self._until_nobody_asks):
            thread = threading.Thread(target=follow, args=(pid, connection))
            thread.daemon = True
            thread.start()

    def _until_it_ends(self, pid: int, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection.sendall(f"{pid}\n".encode())
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        with self._lock:  # a new process may get this pid from here on
            del self._connections[pid]
            _, status = os.waitpid(pid, 0)
        with contextlib.suppress(OSError):
            connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
            connection.shutdown(socket.SHUT_RDWR)

    def _until_nobody_asks(self, pid: int, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection.recv(1)  # returns when the other end is closed
        with self._lock:
            if self._connections.get(pid) is connection:
                _kill(pid)

    def kill(self) -> None:
        """Kills all processes."""
        with self._lock:
            for pid in self._connections:
                _kill(pid)

    def forget(self) -> None:
        """Called in a child, whose siblings these are."""
        for connection in self._connections.values():
            connection.close()


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        os.killpg(pid, signal.SIGKILL)


def _get_ready(ready: str, python: str) -> None:
    if ready == "tensorflow":
        _import_all()
        sys.executable = python
    else:
        _import_what_tensorflow_needs()
        if ready == "keras2_aside":
            _imported.update(put_tensorflow_aside())
    _imported.update(sys.modules)
    # So garbage collections of the children touch, and thus copy, no shared memory.
    gc.collect()
    gc.freeze()


def main() -> None:
    """Forks on request, until the standard input is closed."""
    folder, ready = sys.argv[1:]
    assert ready in get_args(Ready), ready
    sys.path.insert(0, str(ROOT))
    atexit.register(_keep_imported)
    # A shell that runs the tests in its background lets them ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    python = _write_python(folder)
    children = _Children()

    def end() -> None:
        os.read(0, 1)  # not `sys.stdin`: children would inherit its lock as taken
        children.kill()
        os._exit(0)

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.path.join(folder, "socket"))
    listener.listen(100)
    print("listening", flush=True)
    threading.Thread(target=end, daemon=True).start()
    select.select([listener], [], [])
    _get_ready(ready, python)
    while True:
        connection, _ = listener.accept()
        _, files, _, _ = socket.recv_fds(connection, 1, 3)
        with connection.makefile() as lines:
            order = json.loads(lines.readline())
        reads, writes = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setsid()
            os.close(reads)
            os.close(writes)
            listener.close()
            connection.close()
            children.forget()
            _run(order, files)
        for file in (*files, writes):
            os.close(file)
        os.read(reads, 1)  # returns when the child has its process group
        os.close(reads)
        children.add(pid, connection)


if __name__ == "__main__":
    main()
