"""A checkpoint that is written again is whole at each moment, if the process is killed.

TensorFlow replaces its files one after the other, and the state of callbacks comes
last: killed in between, new values would have an old index or an old state. So links to
the old files are kept in a folder beside them until all new ones are there, and the
next run puts them back. A remote directory has no links, and is not guarded.
"""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import socket
import time

from absl import logging

from hookbridge.adapters.state import storage

_KEPT = ".hookbridge-kept"
_OWNER = "owner"  # a file in the folder: the host and the process that write
_WAIT_SECS = 10.0


def begin(prefix: str) -> None:
    """Keep the present files of a checkpoint until `end`."""
    if "://" in prefix:
        return
    folder, part = prefix + _KEPT, f"{prefix}{_KEPT}.part"
    for old in (folder, part):
        shutil.rmtree(old, ignore_errors=True)
    os.mkdir(part)
    for file in _files(prefix):
        copy = os.path.join(part, os.path.basename(file))
        try:
            os.link(file, copy)
        except OSError:  # a file system without links
            shutil.copy2(file, copy)
    with open(os.path.join(part, _OWNER), "w", encoding="utf-8") as owner:
        owner.write(f"{socket.gethostname()} {os.getpid()}")
    os.rename(part, folder)


def end(prefix: str) -> None:
    """Remove the old files that `begin` has kept: all new ones are there."""
    folder, part = prefix + _KEPT, f"{prefix}{_KEPT}.part"
    with contextlib.suppress(FileNotFoundError):
        os.rename(folder, part)
    shutil.rmtree(part, ignore_errors=True)


def undo(directory: str) -> None:
    """Put the old files back, where a process was killed before it came to `end`.

    A process that is still writing is waited for.
    """
    if "://" in directory:
        return
    for folder in glob.glob(os.path.join(glob.escape(directory), f"*{_KEPT}")):
        if not _is_abandoned(folder):
            continue
        for copy in sorted(glob.glob(os.path.join(glob.escape(folder), "*.*"))):
            file = os.path.join(directory, os.path.basename(copy))
            shutil.copy2(copy, f"{file}.part")
            os.replace(f"{file}.part", file)
        prefix = folder.removesuffix(_KEPT)
        end(prefix)
        logging.warning(
            "hookbridge: the job was killed while it wrote the checkpoint %s again, to "
            "add what callbacks had set at the end of its step. The files of the first "
            "write are back.",
            prefix,
        )


def remove_unfinished(directory: str) -> None:
    """Remove links that a process was making, or removing, when it was killed."""
    if "://" not in directory:
        pattern = os.path.join(glob.escape(directory), f"*{_KEPT}.part")
        for part in glob.glob(pattern):
            shutil.rmtree(part, ignore_errors=True)


def _files(prefix: str) -> list[str]:
    """Return the files of a checkpoint, and of its writer's state."""
    state = storage.name_of("")
    endings = (".index", ".data-*", f".{state}.json", f".{state}-*.npz")
    return [file for end in endings for file in glob.glob(glob.escape(prefix) + end)]


def _is_abandoned(folder: str) -> bool:
    """Return whether nobody will come to the end of a rewriting."""
    stop = time.monotonic() + _WAIT_SECS
    while True:
        try:
            with open(os.path.join(folder, _OWNER), encoding="utf-8") as owner:
                host, number = owner.read().split()
        except OSError:
            return os.path.isdir(folder)
        is_here = host == socket.gethostname()
        if is_here and (int(number) == os.getpid() or not _is_alive(int(number))):
            return True
        if time.monotonic() > stop:
            return not is_here
        time.sleep(0.1)


def _is_alive(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
