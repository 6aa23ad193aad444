"""Plans the rewrite of files, then writes them all; a bad one is reported."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hookbridge import errors
from hookbridge.old_programs.reading.one_file.modules import Module, Unread
from hookbridge.old_programs.reading.whole_programs.meaning import shows_tf1
from hookbridge.old_programs.reading.whole_programs.program_files import read_programs
from hookbridge.old_programs.reading.whole_programs.removed_imports import (
    unused_removed_imports,
)
from hookbridge.old_programs.rewriting.engine.module import rewrite_module
from hookbridge.old_programs.rewriting.engine.results import Rewritten
from hookbridge.old_programs.rewriting.engine.rule import RewriteRule, chosen
from hookbridge.old_programs.rewriting.registry import REWRITES
from hookbridge.old_programs.scanning.guests import Guests
from hookbridge.tf1_names.target import NEWEST, Target


@dataclass(frozen=True)
class FileRewrite:
    """The rewrite of one file.

    Attributes:
      module: the file as it was read.
      result: the new text as the user sees it.
      content: what the file will be.
      copy: the copy of the file that gets it; None for the file itself.
    """

    module: Module
    result: Rewritten
    content: str
    copy: Path | None = None

    @property
    def path(self) -> Path:
        """Where the new text goes."""
        return Path(self.module.file) if self.copy is None else self.copy


def rewrite_files(
    paths: Iterable[str | os.PathLike[str]],
    *,
    target: str = NEWEST,
    only: Collection[str] = (),
    skip: Collection[str] = (),
    rules: Sequence[RewriteRule] = REWRITES,
) -> Iterator[FileRewrite | Unread]:
    """Rewrite files and the Python files of folders; nothing is written.

    What a file means follows from its whole program: the files that it imports are
    read, too.

    Args:
      paths: the files and folders.
      target: the version of the TensorFlow that they have to run on, such as "2.21".
      only: the names of the rules to use; empty for all.
      skip: the names of rules to leave out.
      rules: the rules to choose from.

    Yields:
      The rewrite of each file, or why it cannot be read or rewritten.

    Raises:
      errors.InvalidArgumentError: a rule or a version has no such name.
    """
    chosen_rules, adds_comments = chosen(rules, only, skip)
    paths = list(paths)
    programs, unread = read_programs(paths)
    allowed = [os.path.realpath(path) for path in paths]
    names, guests = Target(target), Guests(programs.modules).kinds
    yield from unread
    for module in programs.given:
        try:
            if not any(f"{module.path}/".startswith(f"{top}/") for top in allowed):
                where = f"it leads out of the folder, to {module.path}"
                raise ValueError(f"{where}; name that path")
            if re.search(r"\r(?!\n)", module.text):
                raise ValueError("its lines end with carriage returns alone")
            removed = unused_removed_imports(module, programs)
            in_program = programs.in_program(module)
            in_program = dataclasses.replace(in_program, unused_removed=removed)
            result = rewrite_module(
                module, in_program, names, chosen_rules, adds_comments, guests
            )
            yield _whole(result, module)
        except ValueError as e:
            yield Unread(module.file, str(e))
        except Exception as e:  # a faulty rule must not stop the other files
            fault = f"a rule failed, please report it: {type(e).__name__}: {e}"
            yield Unread(module.file, fault)


def copy_to(
    folder: str | os.PathLike[str], paths: Iterable[str | os.PathLike[str]]
) -> dict[Path, Path]:
    """Copy files and folders into a new folder, to be rewritten there.

    Args:
      folder: where they go; it must not exist, or be empty.
      paths: files, and folders with all that is in them.

    Returns:
      `{path: its copy}`; a single folder's contents are in `folder` itself.

    Raises:
      errors.InvalidArgumentError: a path does not exist, two have one name, or one
        leads into the other.
      errors.UnwritableError: the folder has files, or cannot be written.
    """
    target, sources = Path(folder), [Path(path) for path in paths]
    _check_copy(target, sources)
    if len(sources) == 1 and sources[0].is_dir():
        copies = [target]
    else:
        copies = [target / source.resolve().name for source in sources]
    if len(set(copies)) < len(copies):
        raise errors.InvalidArgumentError(
            "Received paths with the same file name; expected different ones, since "
            "all go into one folder. Name the folder above them."
        )
    copy_of = dict(zip(sources, copies, strict=True))
    try:
        target.mkdir(parents=True, exist_ok=True)
        for source, copy in copy_of.items():
            _copy(source, copy)
    except OSError as e:
        raise errors.UnwritableError(
            f"Received --to={os.fspath(target)}, and the files cannot be copied there: "
            f"{e}."
        ) from e
    return copy_of


def _check_copy(target: Path, sources: Iterable[Path]) -> None:
    """Refuse sources that do not exist, and a target that is in use or inside one."""
    for source in sources:
        if not source.exists():
            raise errors.InvalidArgumentError(
                f"Received the path {os.fspath(source)!r}, which does not exist."
            )
        if target.resolve().is_relative_to(source.resolve()):
            raise errors.InvalidArgumentError(
                f"Received --to={os.fspath(target)}, which is inside "
                f"{os.fspath(source)}; expected a folder outside it."
            )
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise errors.UnwritableError(
            f"Received --to={os.fspath(target)}, which exists and is not empty; "
            "expected a new folder. Remove it, or choose another one."
        )


def _copy(source: Path, copy: Path) -> None:
    """Copy a file, or a folder without what Python and Git keep there."""
    if source.is_dir():
        skip = shutil.ignore_patterns(".git", "__pycache__")
        shutil.copytree(source, copy, symlinks=True, ignore=skip, dirs_exist_ok=True)
    else:
        shutil.copy2(source, copy)


def for_copy(rewrite: FileRewrite, copies: Mapping[Path, Path]) -> FileRewrite:
    """Return a rewrite that goes to the copy of its file, if there is one.

    Args:
      rewrite: the rewrite of a file.
      copies: what `copy_to` has made: a file or folder, and its copy.
    """
    file = rewrite.path.resolve()
    for source, copy in copies.items():
        if file.is_relative_to(source.resolve()):
            path_of_copy = copy / file.relative_to(source.resolve())
            return dataclasses.replace(rewrite, copy=path_of_copy)
    return rewrite


def _whole(result: Rewritten, module: Module) -> FileRewrite:
    """Return the rewrite of a file.

    A notebook is shown with `# cell 3` and its magics.
    """
    if (notebook := module.notebook) is None:
        return FileRewrite(module, result, result.source)
    content = notebook.with_code(result.source)
    show = notebook.shown
    shown = Rewritten(
        show(result.before),
        show(result.source),
        tuple(
            dataclasses.replace(edit, before=show(edit.before), after=show(edit.after))
            for edit in result.edits
        ),
        tuple(dataclasses.replace(t, reason=show(t.reason)) for t in result.todos),
    )
    return FileRewrite(module, shown, content)


def write_all(plan: Sequence[FileRewrite]) -> Iterator[Path]:
    """Replace all files of a plan by their new texts, or none.

    Each new text is first written to a second file beside the first. Only when all are
    there, each replaces its first file: nobody sees half a file. Files that say
    themselves that they mean TensorFlow 1 come last, so that a rewrite which was
    interrupted here can be run again. Mode, encoding and line ends stay. A file that
    changed since it was read, or cannot be written, raises before any is replaced.
    """
    staged: list[tuple[FileRewrite, Path, Path]] = []
    with contextlib.ExitStack() as stack:
        for rewrite in sorted(plan, key=lambda r: shows_tf1(r.module.evidence)):
            path = Path(os.path.realpath(rewrite.path))
            staged_file = path.with_name(f".{path.name}.{os.getpid()}")
            stack.callback(staged_file.unlink, missing_ok=True)
            if reason := _stage(rewrite, path, staged_file):
                raise errors.UnwritableError(
                    f"{os.fspath(rewrite.path)} {reason} Run the rewrite again."
                )
            staged.append((rewrite, path, staged_file))
        for rewrite, path, staged_file in staged:
            os.replace(staged_file, path)
            yield rewrite.path


def _stage(rewrite: FileRewrite, path: Path, beside: Path) -> str:
    """Write the new text beside the file; return why not and a fix, or nothing."""
    try:
        with beside.open("wb") as file:
            file.write(rewrite.content.encode(rewrite.module.encoding))
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(path, beside)
        is_same = path.read_bytes() == rewrite.module.content
    except (OSError, UnicodeEncodeError) as e:
        why = f"could not be written ({type(e).__name__}: {e}); no file was changed."
        is_forbidden = isinstance(e, PermissionError)
        return f"{why} Make it and its folder writable." if is_forbidden else why
    changed = "was changed while it was rewritten; no file was changed."
    return "" if is_same else changed
