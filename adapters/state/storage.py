"""The files of states: their names, and writing, reading and removing them."""

from __future__ import annotations

import os
import re
from collections.abc import Collection

import tensorflow as tf

from hookbridge import errors
from hookbridge.ground.whole_files import replacing


def name_of(task: str) -> str:
    """The part of the files' names that tells whose state it is."""
    return f"hookbridge.{task}" if task else "hookbridge"


def json_path(prefix: str, name: str) -> str:
    """The path of the JSON file of a state."""
    return f"{prefix}.{name}.json"


def arrays_path(prefix: str, name: str, digest: str) -> str:
    """The path of the arrays of a state."""
    return f"{prefix}.{name}-{digest[:16]}.npz"


def read(path: str, most: int) -> bytes:
    """The contents of a file."""
    # To open a FIFO would wait for somebody who writes to it.
    if "://" not in path and not os.path.isfile(path):
        raise ValueError(f"{path} is not a regular file")
    size = int(tf.io.gfile.stat(path).length)
    if size > most:
        raise ValueError(f"{path} has {size} bytes, expected at most {most}")
    with tf.io.gfile.GFile(path, "rb") as file:
        return bytes(file.read(size))


def write(path: str, data: bytes) -> None:
    """Writes a file. If the process is killed, the old file or the new one is whole."""
    part = f"{path}.part"
    if "://" in path:
        with tf.io.gfile.GFile(part, "wb") as file:
            file.write(data)
        tf.io.gfile.rename(part, path, overwrite=True)
        return
    for place in (path, part):
        if os.path.isdir(place):
            raise errors.UnwritableError(
                f"The state of callbacks cannot be written to {place}: a folder has "
                "that name. Move the folder away, or save to another directory."
            )
    try:
        os.unlink(part)
    except FileNotFoundError:
        pass
    # A link that somebody has put there is not followed.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    with replacing(path, part), os.fdopen(os.open(part, flags, 0o666), "wb") as file:
        file.write(data)


def checkpoint_bytes(prefix: str) -> int:
    """The size of the values of a checkpoint."""
    folder, name = os.path.split(prefix)
    return sum(
        int(tf.io.gfile.stat(os.path.join(folder, each)).length)
        for each in _names(folder)
        if each.startswith(f"{name}.data-")
    )


def others(prefix: str, name: str) -> list[str]:
    """The states of the same process beside other checkpoints of the job."""
    folder, stem = _stem(prefix)
    mine = re.compile(rf"{re.escape(stem)}-\d+\.{re.escape(name)}\.json")
    return sorted(each for each in _names(folder) if mine.fullmatch(each))


def remove_unused(prefix: str, name: str, keep: str) -> None:
    """Removes states whose checkpoints the saver has removed, and old arrays."""
    # A file is removed only if its whole name is that of a state of this process.
    # `keep` is the path of the present arrays, if there are some.
    folder, stem = _stem(prefix)
    present = os.path.basename(prefix)
    mine = _files_of(rf"{re.escape(stem)}-\d+|{re.escape(present)}", name)
    names = set(_names(folder))
    for each in names:
        parts = mine.fullmatch(each)
        if parts is None:
            continue
        if parts[1] == present:
            now = (os.path.basename(keep), f"{present}.{name}.json")
            is_old = not each.endswith(".part") and each not in now
        else:
            is_old = not _has_checkpoint(names, parts[1])
        if is_old:
            _remove(folder, each)


def remove_unfinished(folder: str, name: str) -> None:
    """Removes states whose checkpoints a killed process has not come to write.

    Only who writes the checkpoints may call it, before the first one: a state is there
    before its checkpoint.
    """
    mine = _files_of(r".+-\d+", name)
    names = set(_names(folder))
    for each in names:
        parts = mine.fullmatch(each)
        is_part = each.endswith(".part")
        if parts and (is_part or not _has_checkpoint(names, parts[1])):
            _remove(folder, each)


def _files_of(checkpoint: str, name: str) -> re.Pattern[str]:
    """What matches the files of a process's states beside checkpoints of a pattern."""
    return re.compile(
        rf"({checkpoint})\.{re.escape(name)}(\.json|-[0-9a-f]{{16}}\.npz)(\.part)?"
    )


def _has_checkpoint(names: Collection[str], checkpoint: str) -> bool:
    """Whether the files of a checkpoint are among names, in either format."""
    if f"{checkpoint}.index" in names or checkpoint in names:
        return True
    shard = re.compile(rf"{re.escape(checkpoint)}-\d{{5}}-of-\d{{5}}")
    return any(map(shard.fullmatch, names))


def _remove(folder: str, file: str) -> None:
    try:
        tf.io.gfile.remove(os.path.join(folder, file))
    except tf.errors.NotFoundError:
        pass  # another process has removed it


def carry_over(restored: str, saved: str) -> None:
    """Copies the states of all processes from one checkpoint to another one."""
    folder, name = os.path.split(restored)
    names = [each for each in _names(folder) if each.startswith(f"{name}.hookbridge")]
    # Arrays first, so that no JSON file is there without its arrays.
    for each in sorted(names, key=lambda each: each.endswith(".json")):
        if each.endswith((".json", ".npz")):
            source = os.path.join(folder, each)
            tf.io.gfile.copy(source, saved + each.removeprefix(name), overwrite=True)


def _stem(prefix: str) -> tuple[str, str]:
    """The directory of a checkpoint, and its name without the step."""
    folder, name = os.path.split(prefix)
    return folder, name.rsplit("-", 1)[0]


def _names(folder: str) -> list[str]:
    try:
        return [str(each).rstrip("/") for each in tf.io.gfile.listdir(folder or ".")]
    except tf.errors.NotFoundError:
        return []
