"""Reads, rewrites and writes files; a bad one is reported, the others go on."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import io
import os
import re
import shutil
import tempfile
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from hookbridge import errors
from hookbridge.migrate import guest_classes
from hookbridge.migrate.findings import Unread
from hookbridge.migrate.names import Names
from hookbridge.migrate.rewriting import notebooks
from hookbridge.migrate.rewriting.results import Rewritten
from hookbridge.migrate.rewriting.source import rewrite
from hookbridge.migrate.sources import MAX_BYTES, find_files, parsed, why


@dataclass(frozen=True)
class FileText:
    """A file of Python as it was read.

    Attributes:
      path: where it is.
      content: its bytes.
      encoding: their encoding; "utf-8-sig" for a file with a byte order mark.
      text: the code, with the file's own line ends.
      notebook: the notebook that the code is from; None for a file of Python.
    """

    path: Path
    content: bytes
    encoding: str
    text: str
    notebook: notebooks.Notebook | None = None


@dataclass(frozen=True)
class FileRewrite:
    """The rewrite of one file.

    Attributes:
      file: what was read.
      result: what came out.
    """

    file: FileText
    result: Rewritten


def read(path: Path) -> FileText | Unread:
    """Reads a file of Python; returns the reason if it cannot be rewritten."""
    name = os.fspath(path)
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            return Unread(name, f"{size} bytes; files over {MAX_BYTES} are not read")
        content = path.read_bytes()
        if path.suffix == ".ipynb":
            notebook = notebooks.parse(content.decode("utf-8"))
            return FileText(path, content, "utf-8", notebook.text, notebook)
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = content.decode(encoding)
        parsed(name, 0, text)
        if re.search(r"\r(?!\n)", text):
            return Unread(name, "its lines end with carriage returns alone")
    except SyntaxError as e:
        return Unread(name, why(e))
    except UnicodeDecodeError as e:
        return Unread(name, f"not text in its encoding ({e.encoding}): {e.reason}")
    except (ValueError, LookupError, OSError, RecursionError, MemoryError) as e:
        return Unread(name, f"{type(e).__name__}: {e}")
    return FileText(path, content, encoding, text)


def rewrite_files(
    paths: Iterable[str | os.PathLike[str]], **options: Any
) -> Iterator[FileRewrite | Unread]:
    """Rewrites files and the Python files of folders; nothing is written.

    Args:
      paths: files and folders.
      **options: as for `rewrite`; `guests` are found in the files themselves.

    Yields:
      The result of each file, in a fixed order.

    Raises:
      errors.InvalidArgumentError: a path does not exist, or an option is wrong.
    """
    rewrite("", **options)  # a wrong option must raise, not be reported for each file
    read_files = [read(path) for path in find_files(paths)]
    modules = {f.path: _module(f) for f in read_files if isinstance(f, FileText)}
    guests = guest_classes.kinds(list(modules.values()))
    classes = {name.rpartition(".")[2] for name in guests}
    used = {path: classes & _used_names(m) for path, m in modules.items()}
    for file in read_files:
        if isinstance(file, Unread):
            yield file
            continue
        try:
            others = (names for path, names in used.items() if path != file.path)
            shared = frozenset(chain.from_iterable(others))
            done = rewrite(file.text, guests=guests, shared=shared, **options)
            yield FileRewrite(file, _shown(done, file.notebook))
        except (errors.InvalidArgumentError, ValueError) as e:
            yield Unread(os.fspath(file.path), str(e))
        except Exception as e:  # a faulty rule must not stop the other files
            fault = f"a rule failed, please report it: {type(e).__name__}: {e}"
            yield Unread(os.fspath(file.path), fault)


def _shown(done: Rewritten, notebook: notebooks.Notebook | None) -> Rewritten:
    """The result as the user sees the text: with IPython's lines and `# cell 3`.

    Raises:
      ValueError: the cells of a notebook cannot be found in it any more.
    """
    if notebook is None:
        return done
    before, source = (notebook.shown(text) for text in (done.before, done.source))
    notebook.with_code(source)
    return dataclasses.replace(done, before=before, source=source)


def _module(file: FileText) -> guest_classes.Module:
    source = parsed(os.fspath(file.path), 0, file.text)
    return guest_classes.Module(source, Names(source))


def _used_names(module: guest_classes.Module) -> set[str]:
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
    path = Path(os.path.realpath(done.file.path))
    name = os.fspath(done.file.path)
    try:
        text, notebook = done.result.source, done.file.notebook
        text = text if notebook is None else notebook.with_code(text)
        content = text.encode(done.file.encoding)
        with tempfile.NamedTemporaryFile(
            dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as beside:
            try:
                beside.write(content)
                beside.flush()
                os.fsync(beside.fileno())
                shutil.copymode(path, beside.name)
                if path.read_bytes() != done.file.content:
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
