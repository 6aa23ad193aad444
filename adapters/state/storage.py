"""The files of states: their names, and writing, reading and removing them."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection

import tensorflow as tf

from hookbridge import errors
from hookbridge.ground.whole_files import replacing


def name_of(task: str) -> str:
    """Return the part of the files' names that tells whose state it is."""
    return f"hookbridge.{task}" if task else "hookbridge"


def prefix_of(saver: object, path: object, step: int | None) -> str:
    """Return the path of the checkpoint that a saver writes, without suffix.

    Args:
      saver: the saver, which may write the step with zeros before it.
      path: what it is told to save to.
      step: the global step that it is told; None for none.
    """
    if step is None:
        return str(path)
    pads = getattr(saver, "_pad_step_number", False)
    return f"{path}-{step:08d}" if pads else f"{path}-{step}"


def json_path(prefix: str, name: str) -> str:
    """Return the path of the JSON file of a state."""
    return f"{prefix}.{name}.json"


def arrays_path(prefix: str, name: str, digest: str) -> str:
    """Return the path of the arrays of a state."""
    return f"{prefix}.{name}-{digest[:16]}.npz"


def read(path: str, most: int) -> bytes:
    """Return the contents of a file.

    Args:
      path: a path or URL.
      most: how many bytes the file may have.

    Raises:
      ValueError: it is larger, or not a regular file.
      tf.errors.OpError: it cannot be read.
    """
    # To open a FIFO would wait for somebody who writes to it.
    if "://" not in path and not os.path.isfile(path):
        raise ValueError(f"{path} is not a regular file")
    size = int(tf.io.gfile.stat(path).length)
    if size > most:
        raise ValueError(f"{path} has {size} bytes, expected at most {most}")
    with tf.io.gfile.GFile(path, "rb") as file:
        return bytes(file.read(size))


def write(path: str, data: bytes) -> None:
    """Write a file. If the process is killed, the old file or the new one is whole.

    Args:
      path: a path or URL.
      data: all of its contents.

    Raises:
      errors.UnwritableError: a folder has that name.
      OSError: the file cannot be written.
    """
    part = f"{path}.part"
    if "://" in path:
        with tf.io.gfile.GFile(part, "wb") as file:
            file.write(data)
        tf.io.gfile.rename(part, path, overwrite=True)
        return
    for target in (path, part):
        if os.path.isdir(target):
            raise errors.UnwritableError(
                f"The state of callbacks cannot be written to {target}: a folder has "
                "that name. Move the folder away, or save to another directory."
            )
    with contextlib.suppress(FileNotFoundError):
        os.unlink(part)
    # A link that somebody has put there is not followed.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    with replacing(path, part), os.fdopen(os.open(part, flags, 0o666), "wb") as file:
        file.write(data)


def checkpoint_bytes(prefix: str) -> int:
    """Return the size of the values of a checkpoint."""
    folder, name = os.path.split(prefix)
    return sum(
        int(tf.io.gfile.stat(os.path.join(folder, file)).length)
        for file in _names(folder)
        if file.startswith(f"{name}.data-")
    )


def others(prefix: str, name: str) -> list[str]:
    """Return the states of the same process beside other checkpoints of the job."""
    folder, stem = _stem(prefix)
    pattern = re.compile(rf"{re.escape(stem)}-\d+\.{re.escape(name)}\.json")
    return sorted(file for file in _names(folder) if pattern.fullmatch(file))


def remove_unused(prefix: str, name: str, keep: str) -> None:
    """Remove states whose checkpoints the saver has removed, and old arrays."""
    # A file is removed only if its whole name is that of a state of this process.
    # `keep` is the path of the present arrays, if there are some.
    folder, stem = _stem(prefix)
    present = os.path.basename(prefix)
    now = (os.path.basename(keep), f"{present}.{name}.json")
    names = set(_names(folder))
    of_job = rf"{re.escape(stem)}-\d+|{re.escape(present)}"
    for file, checkpoint in _states(names, of_job, name):
        if checkpoint == present:
            is_old = not file.endswith(".part") and file not in now
        else:
            is_old = not _has_checkpoint(names, checkpoint)
        if is_old:
            _remove(folder, file)


def remove_unfinished(folder: str, name: str) -> None:
    """Remove states whose checkpoints a killed process has not come to write.

    Only who writes the checkpoints may call it, before the first one: a state is there
    before its checkpoint.
    """
    names = set(_names(folder))
    for file, checkpoint in _states(names, r".+-\d+", name):
        if file.endswith(".part") or not _has_checkpoint(names, checkpoint):
            _remove(folder, file)


def _states(
    names: Collection[str], checkpoint: str, name: str
) -> list[tuple[str, str]]:
    """Return the files of a process's states, each with its checkpoint.

    Args:
      names: the files of a folder.
      checkpoint: the pattern of the names of the checkpoints.
      name: see `name_of`.
    """
    pattern = re.compile(
        rf"({checkpoint})\.{re.escape(name)}(\.json|-[0-9a-f]{{16}}\.npz)(\.part)?"
    )
    return [(match[0], match[1]) for match in map(pattern.fullmatch, names) if match]


def _has_checkpoint(names: Collection[str], checkpoint: str) -> bool:
    """Return whether the files of a checkpoint are among names, in either format."""
    if f"{checkpoint}.index" in names or checkpoint in names:
        return True
    shard = re.compile(rf"{re.escape(checkpoint)}-\d{{5}}-of-\d{{5}}")
    return any(map(shard.fullmatch, names))


def _remove(folder: str, file: str) -> None:
    with contextlib.suppress(tf.errors.NotFoundError):  # by another process
        tf.io.gfile.remove(os.path.join(folder, file))


def carry_over(restored: str, saved: str) -> None:
    """Copy the states of all processes from one checkpoint to another one.

    Args:
      restored: the prefix of the checkpoint that has them.
      saved: the prefix of the checkpoint that gets them; existing files are replaced.
    """
    folder, name = os.path.split(restored)
    names = [file for file in _names(folder) if file.startswith(f"{name}.hookbridge")]
    # Arrays first, so that no JSON file is there without its arrays.
    for file in sorted(names, key=lambda each: each.endswith(".json")):
        if file.endswith((".json", ".npz")):
            source = os.path.join(folder, file)
            tf.io.gfile.copy(source, saved + file.removeprefix(name), overwrite=True)


def _stem(prefix: str) -> tuple[str, str]:
    """Return the directory of a checkpoint, and its name without the step."""
    folder, name = os.path.split(prefix)
    return folder, name.rsplit("-", 1)[0]


def _names(folder: str) -> list[str]:
    try:
        return [str(entry).rstrip("/") for entry in tf.io.gfile.listdir(folder or ".")]
    except tf.errors.NotFoundError:
        return []
