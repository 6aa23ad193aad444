"""Plans the rewrite of files, then writes them all; a bad one is reported."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from hookbridge import errors
from hookbridge.migrate.findings import Unread
from hookbridge.migrate.guest_classes import Guests
from hookbridge.migrate.reading.modules import Module
from hookbridge.migrate.reading.notebooks import Notebook
from hookbridge.migrate.reading.programs import Programs, read_programs
from hookbridge.migrate.reading.sources import Source
from hookbridge.migrate.rewrites.registry import REWRITES
from hookbridge.migrate.rewriting.context import Options
from hookbridge.migrate.rewriting.results import Rewritten
from hookbridge.migrate.rewriting.source import Rewriting
from hookbridge.migrate.target import NEWEST, Target

if TYPE_CHECKING:
    from hookbridge.migrate.rewriting.rule import RewriteRule


@dataclass(frozen=True)
class FileRewrite:
    """The rewrite of one file.

    Attributes:
      source: what was read.
      result: what came out.
    """

    source: Source
    result: Rewritten

    @property
    def path(self) -> Path:
        """Where the file is."""
        return Path(self.source.file)


def rewrite_files(
    paths: Iterable[str | os.PathLike[str]],
    *,
    target: str = NEWEST,
    only: Collection[str] = (),
    skip: Collection[str] = (),
    native: bool = False,
    add_guests: bool = False,
    rules: Sequence[RewriteRule] = REWRITES,
) -> Iterator[FileRewrite | Unread]:
    """Rewrites files and the Python files of folders; nothing is written.

    What a file means follows from its whole program: the files that it imports are
    read, too.

    Args:
      paths: files and folders.
      target, only, skip, native, add_guests, rules: as for `rewrite`.

    Yields:
      The result of each file, in a fixed order.

    Raises:
      errors.InvalidArgumentError: a path does not exist, or an option is wrong.
    """
    rewriting = Rewriting(rules, only, skip)
    Target(target)  # a wrong one must raise, not be reported for each file
    options = Options(target, native, add_guests)
    programs, unread = read_programs(paths)
    guests = Guests(programs.modules).kinds
    classes = {name.rpartition(".")[2] for name in guests}
    used = {m: classes & _used_names(m) for m in programs.modules} if native else {}
    yield from unread
    for module in programs.given:
        others = chain.from_iterable(n for m, n in used.items() if m is not module)
        own = dataclasses.replace(options, guests=guests, shared=frozenset(others))
        yield _one(module, programs, rewriting, own)


def _one(
    module: Module, programs: Programs, rewriting: Rewriting, options: Options
) -> FileRewrite | Unread:
    source = module.source
    if re.search(r"\r(?!\n)", source.text):
        return Unread(module.file, "its lines end with carriage returns alone")
    try:
        done = rewriting.of(module, programs.place(module), options)
        return FileRewrite(source, _shown(done, source.notebook))
    except (errors.InvalidArgumentError, ValueError) as e:
        return Unread(module.file, str(e))
    except Exception as e:  # a faulty rule must not stop the other files
        fault = f"a rule failed, please report it: {type(e).__name__}: {e}"
        return Unread(module.file, fault)


def _shown(done: Rewritten, notebook: Notebook | None) -> Rewritten:
    """The result as the user sees the text: with IPython's lines and `# cell 3`.

    Raises:
      ValueError: the cells of a notebook cannot be found in it any more.
    """
    if notebook is None:
        return done
    before, source = (notebook.shown(text) for text in (done.before, done.source))
    notebook.with_code(source)
    return dataclasses.replace(done, before=before, source=source)


def _used_names(module: Module) -> set[str]:
    """Every name that a file reads or imports, alone or as an attribute."""
    found = set()
    for node in module.source.nodes:
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.alias):
            found.add(node.name.rpartition(".")[2])
    return found


def write(done: FileRewrite) -> None:
    """Replaces the file with the new text.

    The new text is written to a second file, which then replaces the first: nobody sees
    half a file. Mode, encoding and line ends stay.

    Raises:
      errors.UnwritableError: the file was changed since it was read, or its folder
        takes no file.
    """
    path = Path(os.path.realpath(done.path))
    name = os.fspath(done.path)
    try:
        text, notebook = done.result.source, done.source.notebook
        text = text if notebook is None else notebook.with_code(text)
        content = text.encode(done.source.encoding)
        with tempfile.NamedTemporaryFile(
            dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as beside:
            try:
                beside.write(content)
                beside.flush()
                os.fsync(beside.fileno())
                shutil.copymode(path, beside.name)
                if path.read_bytes() != done.source.content:
                    raise errors.UnwritableError(
                        f"{name} was changed while it was rewritten; it was left as "
                        "it is. Run the rewrite again."
                    )
                os.replace(beside.name, path)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(beside.name)
                raise
    except errors.UnwritableError:
        raise
    except (OSError, UnicodeEncodeError) as e:
        raise errors.UnwritableError(
            f"{name} could not be written ({type(e).__name__}: {e}); it was left as "
            "it is."
        ) from e
